"""What the drivers of these jobs share: a launch of several sessions, its rules, its lines, whose record is whose."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

GRACE_S = 40.0  # torchrun kills after 30 what does not end when asked to
FIRST_LATE_STEP = 8  # the injection's default
LINE_STARTS = ("STRAGGLER", "CLEARED", "IMBALANCE", "JOB WIDE", "NETWORK", "NO ")

Line = tuple[float, str]  # when it came out, seconds on the monotonic clock, and its text
Record = dict[str, Any]


def shifted(rule: str, first: int, steps: int, parts: int = 1) -> str:
    """A rule of a session for its launch, whose steps the injection counts on from one session to the next: the session
    has `steps` steps and comes after `first`. Where a step has several backwards it counts as so many `parts`; a delay
    before the step's first one is then due in the first part alone, one in the backward in each.

    shifted("rank=1,where=input,ms=3,from=20", 100, 50) = "rank=1,where=input,ms=3,from=120,to=149"
    """
    fields = dict(part.split("=") for part in rule.split(","))
    begins, ends = int(fields.get("from", FIRST_LATE_STEP)), int(fields.get("to", steps - 1))
    fields["from"], fields["to"] = str((first + begins) * parts), str((first + ends + 1) * parts - 1)
    if parts > 1 and fields["where"] != "backward":
        fields["every"] = str(int(fields.get("every", 1)) * parts)
    return ",".join(f"{name}={value}" for name, value in fields.items())


def watch(
    command: list[str], environment: dict[str, str], limit: float, said: Callable[[str], None] | None = None
) -> tuple[int, list[Line]]:
    """Runs a command; gives its exit code and the lines of its standard error, each with the time it came out. Each
    line of its standard output is given to `said` as it comes, on a thread of its own; what that raises first is raised
    at the end."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE if said else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    lines: list[Line] = []
    errors: list[Exception] = []

    def read() -> None:
        assert process.stderr is not None
        lines.extend((time.monotonic(), line.rstrip("\n")) for line in process.stderr)

    def hear() -> None:
        assert process.stdout is not None and said is not None
        for line in process.stdout:
            try:
                said(line.rstrip("\n"))
            except Exception as error:
                errors.append(error)

    readers = [threading.Thread(target=read), *([threading.Thread(target=hear)] if said else [])]
    for reader in readers:
        reader.start()
    try:
        process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            _end(process)
        for reader in readers:
            reader.join()
    if errors:
        raise errors[0]
    return process.returncode, lines


def _end(process: subprocess.Popen[str]) -> None:
    """torchrun ends its ranks when it is asked to; killed, it would leave them."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def by_session(records: Iterable[Record]) -> Iterator[list[Record]]:
    """The records of each session that has a report. A `session` record begins one, a `report` ends it; one that has
    no report is of a launch that failed."""
    current: list[Record] = []
    for record in records:
        if record["type"] == "session":
            current = []
        current.append(record)
        if record["type"] == "report":
            yield current
            current = []


def within(lines: Iterable[Line], begin: float, end: float) -> list[Line]:
    """The detector's lines that came out in this time."""
    return [(at, text) for at, text in lines if begin < at <= end and text.startswith(LINE_STARTS)]
