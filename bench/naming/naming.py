"""Is the right rank named in time, and nobody else? Real runs of workload.py under `straggler run`, with delays.

    .venv/bin/python bench/naming/naming.py named quiet live --json bench/naming/results/naming.json

A case is one launch that runs one or several sessions, each with its own verdicts and report. `named`: one rank is
late. `quiet`: nobody is to blame for most of the session, and then a rank is late after all, as a positive control in
the same run: a detector that names nobody ever would pass the quiet part alone. `live`: delays that end or move, and a
small one. `shift`: 1 ms inside one rank's backward, for the figures of self time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
OVERHEAD = HERE.parent / "overhead"
sys.path.insert(0, str(OVERHEAD))
from common import dump  # noqa: E402

WINDOW = 10  # steps, the default
FIRST_LATE_STEP = 8  # the injection's default
SEED = 1  # of what is drawn; the thresholds were chosen on runs of seed 0
LINE_STARTS = ("STRAGGLER", "CLEARED", "IMBALANCE", "NETWORK", "JOB WIDE", "NO ")


@dataclass(frozen=True)
class Case:
    """`named`: the ranks that have to be named, in this order, and no other ever. `says`: kinds that have to be told.
    `begins`, `ends`: the first steps with the delay and without it; nobody may be named before it begins. Steps, in the
    rules too, are those of a session."""

    suite: str
    name: str
    rules: tuple[str, ...]
    named: tuple[int, ...]
    ranks: int = 4
    sessions: int = 10
    steps: int = 70
    base_ms: float = 30.0
    more_layers: int = 0  # beside the three that are a collective a step
    begins: int = FIRST_LATE_STEP
    ends: int | None = None
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Session:
    """What one session said: its verdict records, the report, the lines with the time at which each came out, and the
    end of each step."""

    verdicts: list[dict[str, Any]]
    report: dict[str, Any]
    lines: list[tuple[float, str]]
    step_ends: list[float]


# ---- Cases -----------------------------------------------------------------------------------------------------------


def named_cases(runs: int) -> Iterable[Case]:
    for ranks in (2, 4, 8):
        for where in ("input", "forward", "backward"):
            for rank in sorted({0, min(2, ranks - 1), ranks - 1}):
                name = f"6 ms at {where}, rank {rank} of {ranks}"
                yield Case("named", name, (f"rank={rank},where={where},ms=6",), (rank,), ranks=ranks, sessions=runs)


def quiet_cases(steps: int) -> Iterable[Case]:
    quiet = steps - 100
    disturbances: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "clean": ((), ()),
        "rank 0 late by 300 ms every 20 steps": (("rank=0,where=input,ms=300,every=20",), ()),
        "everyone 30 % slower from the middle on": ((f"rank=all,where=forward,ms=9,from={quiet // 2}",), ("job_wide",)),
        "rotating, 8 ms": (("rank=0,where=forward,ms=8,rotate=true",), ("imbalance",)),
        "collector pauses, 200 ms, 1 step in 100": (
            (f"rank=all,where=forward,ms=200,probability=0.01,seed={SEED}",),
            (),
        ),
    }
    for name, (rules, says) in disturbances.items():
        control = f"rank=2,where=backward,ms=8,from={quiet}"
        yield Case(
            "quiet", name, (*rules, control), (2,), sessions=1, steps=steps, more_layers=5, begins=quiet, says=says
        )


def live_cases(runs: int) -> Iterable[Case]:
    yield Case("live", "2 ms at backward, rank 2", ("rank=2,where=backward,ms=2",), (2,), sessions=runs, steps=400)
    ending = ("rank=2,where=backward,ms=6,to=99",)
    yield Case("live", "delay that ends", ending, (2,), sessions=runs, steps=180, ends=100, says=("cleared",))
    moving = ("rank=1,where=backward,ms=6,to=99", "rank=3,where=backward,ms=6,from=100")
    yield Case("live", "delay that moves from rank 1 to 3", moving, (1, 3), sessions=runs, steps=200, says=("cleared",))


def shift_cases() -> Iterable[Case]:
    rules = ("rank=2,where=backward,ms=1",)
    yield Case("shift", "1 ms at backward, rank 2", rules, (2,), sessions=1, steps=400, base_ms=20)
    yield Case("shift", "clean", (), (), sessions=1, steps=400, base_ms=20)


# ---- Runs ------------------------------------------------------------------------------------------------------------


def run(case: Case) -> list[Session]:
    """The case's sessions.

    Raises:
        RuntimeError: the job failed, or a session left no report.
    """
    inject = [part for rule in rules_of_launch(case) for part in ("--inject", rule)]
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.json"
        job = [str(HERE / "workload.py"), f"--sessions={case.sessions}", f"--steps={case.steps}"]
        job += [f"--base-ms={case.base_ms}", f"--more-layers={case.more_layers}", f"--times={times}"]
        environment = {**os.environ, "STRAGGLER_DIR": folder, "OMP_NUM_THREADS": "1"}
        command = [str(Path(sys.executable).with_name("straggler")), "run", f"--nproc-per-node={case.ranks}"]
        limit = 60 + case.sessions * (10 + case.steps * (case.base_ms + 100) / 1e3)
        code, lines = watch([*command, *inject, *job], environment, limit)
        if code != 0:
            raise RuntimeError(f"{case.name}: exit code {code}\n" + "\n".join(line for _, line in lines[-30:]))
        records = [json.loads(line) for line in (Path(folder) / "job.jsonl").read_text().splitlines()]
        ends = json.loads(times.read_text())
    return split(case, records, lines, ends)


def rules_of_launch(case: Case) -> list[str]:
    """The rules of each session: the injection counts the steps of a launch."""
    rules = []
    for number in range(case.sessions):
        first = number * case.steps
        for rule in case.rules:
            fields = dict(part.split("=") for part in rule.split(","))
            fields["from"] = str(first + int(fields.get("from", FIRST_LATE_STEP)))
            fields["to"] = str(first + int(fields.get("to", case.steps - 1)))
            rules.append(",".join(f"{name}={value}" for name, value in fields.items()))
    return rules


def watch(command: list[str], environment: dict[str, str], limit: float) -> tuple[int, list[tuple[float, str]]]:
    """Runs a command; gives its exit code and the lines of its standard error, each with the time it came out."""
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    lines: list[tuple[float, str]] = []

    def read() -> None:
        assert process.stderr is not None
        lines.extend((time.monotonic(), line.rstrip("\n")) for line in process.stderr)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        code = process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        code = process.wait()
    reader.join()
    return code, lines


def split(
    case: Case, records: list[dict[str, Any]], lines: list[tuple[float, str]], ends: list[list[float]]
) -> list[Session]:
    """What belongs to each session: a `report` record ends one, and so does the end of its last step."""
    sessions: list[Session] = []
    verdicts: list[dict[str, Any]] = []
    for record in records:
        if record["type"] == "verdict":
            verdicts.append(record)
        elif record["type"] == "report":
            steps = ends[len(sessions)]
            own = [(at, text) for at, text in lines if steps[0] < at <= steps[-1] and text.startswith(LINE_STARTS)]
            sessions.append(Session(verdicts, record, own, steps))
            verdicts = []
    if len(sessions) != case.sessions:
        raise RuntimeError(f"{case.name}: {len(sessions)} reports of {case.sessions} sessions")
    return sessions


# ---- Scores ----------------------------------------------------------------------------------------------------------


def is_right(case: Case, session: Session) -> bool:
    """Whether the ranks that were ever named are those to be named, in their order, none before the delay began, and
    what has to be said was said."""
    order: list[int] = []
    for verdict in session.verdicts:
        if verdict["kind"] == "straggler":
            order += [rank for rank in verdict["ranks"] if rank not in order]
            if verdict["step"] < case.begins:
                return False
    said = {verdict["kind"] for verdict in session.verdicts}
    return tuple(order) == case.named and said.issuperset(case.says)


def windows_from(verdicts: list[dict[str, Any]], kind: str, step: int) -> int | None:
    """Whole windows from `step` on until a verdict of this kind was told, the last included."""
    after = [v["step"] for v in verdicts if v["kind"] == kind and v["step"] >= step]
    return after[0] // WINDOW - -(-step // WINDOW) + 1 if after else None


def line_seconds(case: Case, session: Session) -> float | None:
    """Seconds from the end of the third whole window with the delay to the line; negative if it came before."""
    due = (-(-case.begins // WINDOW) + 3) * WINDOW - 1
    came = [at for at, text in session.lines if text.startswith("STRAGGLER")]
    return came[0] - session.step_ends[due] if came else None


def spread(values: Iterable[float | None]) -> list[float] | None:
    """Smallest, median, largest of what is known."""
    known = [value for value in values if value is not None]
    return [round(float(of(known)), 2) for of in (min, statistics.median, max)] if known else None


def summary(case: Case, sessions: list[Session]) -> dict[str, Any]:
    reports = [session.report for session in sessions]
    told = [next((v for v in s.verdicts if v["kind"] == "straggler"), None) for s in sessions]
    causes = [verdict["cause"] for verdict in told if verdict is not None]
    windows = sum(report["windows_compared"] for report in reports)
    return {
        "suite": case.suite,
        "case": case.name,
        "rules": case.rules,
        "right": sum(is_right(case, session) for session in sessions),
        "runs": len(sessions),
        "named": [[v["ranks"] for v in s.verdicts if v["kind"] == "straggler"] for s in sessions],
        "kinds": sorted({v["kind"] for s in sessions for v in s.verdicts}),
        "windows_to_name": spread(windows_from(s.verdicts, "straggler", case.begins) for s in sessions),
        "line_s": spread(line_seconds(case, session) for session in sessions),
        "windows_to_clear": spread(
            windows_from(s.verdicts, "cleared", case.ends) if case.ends else None for s in sessions
        ),
        "excess_ms": spread(verdict["excess_ms"] for verdict in told if verdict is not None),
        "causes": {cause: causes.count(cause) for cause in sorted(set(causes))},
        "self_ms": [
            round(statistics.median(report["ranks"][rank]["self_ms"] for report in reports), 2)
            for rank in range(case.ranks)
        ],
        "step_ms": round(statistics.median(report["step_ms"] for report in reports), 1),
        "windows": windows,
        "abstained_share": round(sum(report["windows_incomplete"] for report in reports) / max(1, windows), 4),
        "collectives": sum(report["collectives"] for report in reports),  # calls, of all ranks
        "operations_compared": sum(report["ranks"][0]["operations_compared"] for report in reports),
        "records_dropped": sum(report["records_dropped"] for report in reports),
    }


COLUMNS = (
    "case",
    "right",
    "runs",
    "windows_to_name",
    "line_s",
    "windows_to_clear",
    "excess_ms",
    "causes",
    "abstained_share",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="+", choices=("named", "quiet", "live", "shift"))
    parser.add_argument("--runs", type=int, default=10, help="sessions of each case with a culprit")
    parser.add_argument(
        "--quiet-steps", type=int, default=2500, help="steps of each quiet case, the last 100 a control"
    )
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", default=None)
    args = parser.parse_args()
    suites = {
        "named": named_cases(args.runs),
        "quiet": quiet_cases(args.quiet_steps),
        "live": live_cases(args.runs),
        "shift": shift_cases(),
    }
    view = Table(*COLUMNS)
    rows = []
    for case in (case for suite in args.suites for case in suites[suite] if args.only in case.name):
        rows.append(summary(case, run(case)))
        view.add_row(*(str(rows[-1][column]) for column in COLUMNS))
        print(rows[-1], flush=True)
        if args.json:
            dump(args.json, "naming", rows, vars(args))
    Console(width=180).print(view)
    return 0 if all(row["right"] == row["runs"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
