"""`straggler report`: the report of a job from its records, `job.jsonl`. `straggler rescore` reads them alike.

The file is read line by line, so its size does not matter, and its lines are fed to the same code that made the report
while the job ran. A job that was killed leaves a last line that is cut off: that is expected, counted and said. Any
other line that cannot be read is named by its number, and the rest is used.

A record of type `session` begins a report; every other goes to what was made for it, which has no use for results. A
file may hold several sessions: of jobs that wrote to the same folder one after the other, or of a job that made its
groups anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from torch_straggler import _C
from torch_straggler.report import SCHEMA

FILE = "job.jsonl"
LINES_NAMED = 5
MAX_LINE = 64 << 20  # bytes; a report of thousands of ranks and groups is shorter
MEASUREMENTS = ("window", "arrivals")


class NoReportError(Exception):
    """There is nothing to report from. The text says what was looked for, and what to do."""


@dataclass
class Session:
    """One session of the job, replayed. `measurements` counts the lines that a report can be made from.

    `replay` is what took its lines: a `_C.Replay`, or what `read()` was told to make.
    """

    replay: Any
    measurements: int = 0

    def compared(self) -> bool:
        """Whether any step or operation is known of every rank. Of a rank alone there is nothing to compare."""
        report = json.loads(self.replay.report_json())
        return bool(report["world_size"] == 1 or report["steps"] or report["skew"])


@dataclass
class Recording:
    """What was read.

    Attributes:
        sessions: in the order of the file; those without a measurement are left out.
        bad_lines: (line number from 1, reason) of each line that was not used.
        cut_off: number of the last line if it is cut off, else None.
        running: the session that the next line belongs to.
    """

    sessions: list[Session] = field(default_factory=list)
    bad_lines: list[tuple[int, str]] = field(default_factory=list)
    cut_off: int | None = None
    running: Session | None = None

    def warnings(self) -> Iterator[str]:
        """What the reader of the report has to know about the file, a line each."""
        if len(self.sessions) > 1:
            yield f"{len(self.sessions)} sessions are in these records; the report is of the last"
        for number, reason in self.bad_lines[:LINES_NAMED]:
            yield f"line {number} is not used: {reason}"
        if len(self.bad_lines) > LINES_NAMED:
            yield f"{len(self.bad_lines)} lines are not used in all"
        if self.cut_off is not None:
            yield f"line {self.cut_off}, the last, is cut off, as when a job is killed; the rest is used"


def read(path: Path, make: Callable[[dict[str, Any]], Any] | None = None) -> Recording:
    """Reads the records in a folder, or a file of them.

    Args:
        make: gives, for the record that begins a session, what takes its lines with `line(record)`; None: `_C.Replay`.

    Raises:
        NoReportError: there is no such path, no records in it, or no measurement among them.
    """
    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        what = f"{path} holds no {FILE}" if path.is_dir() else f"{path} does not exist"
        raise NoReportError(f"{what}; a job writes its records to the folder that STRAGGLER_DIR names")
    try:
        with file.open("rb") as records:
            recording = _read_lines(_bounded(records), make or _C.Replay)
    except OSError as error:
        raise NoReportError(f"{file} cannot be read: {error.strerror}") from error
    recording.sessions = [session for session in recording.sessions if session.measurements]
    if not recording.sessions:
        warnings = "".join(f"; {text}" for text in recording.warnings())
        raise NoReportError(f"{file} holds no window and no arrival, so there is nothing to report{warnings}")
    return recording


def _bounded(records: BinaryIO) -> Iterator[bytes]:
    """The lines of a file. Of one that is too long to be a record only the beginning is kept, and read as a line."""
    while line := records.readline(MAX_LINE):
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = records.readline(MAX_LINE)
            line += b"\n"
        yield line


def _read_lines(lines: Iterable[bytes], make: Callable[[dict[str, Any]], Any]) -> Recording:
    recording = Recording()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except RecursionError:
            recording.bad_lines.append((number, "nested too deeply"))
            continue
        except ValueError as error:  # not JSON, or not UTF-8
            if line.endswith(b"\n"):
                recording.bad_lines.append((number, f"not JSON ({error})"))
            else:
                recording.cut_off = number
            continue
        try:
            _use(recording, record, make)
        except ValueError as error:
            recording.bad_lines.append((number, str(error)))
    return recording


def _use(recording: Recording, record: Any, make: Callable[[dict[str, Any]], Any]) -> None:
    kind = record.get("type") if isinstance(record, dict) else None
    if kind is None:
        raise ValueError("not a record: an object with a type is expected")
    if record.get("schema", SCHEMA) != SCHEMA:
        raise ValueError(f"it has schema {record['schema']!r}, this torch_straggler reads schema {SCHEMA}")
    if kind == "session":
        recording.running = None  # if the line is bad, what follows belongs to no session
        recording.running = Session(make(record))
        recording.sessions.append(recording.running)
        return
    if recording.running is None:
        raise ValueError("a record that belongs to no session")
    recording.running.measurements += recording.running.replay.line(record) and kind in MEASUREMENTS
