"""Is the right rank named, and nobody else? Real runs of workload.py under `straggler run`, with injected delays.

    .venv/bin/python bench/naming/naming.py --json bench/naming/results/naming.json

A case is one launch of 4 ranks that runs several sessions, each with its own report. Cases with a culprit want it named
and nobody else; quiet cases want nobody named, and each is run once more with a culprit beside the disturbance, as a
positive control: a detector that names nobody ever would pass the quiet cases alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
OVERHEAD = HERE.parent / "overhead"
sys.path.insert(0, str(OVERHEAD))
from common import dump  # noqa: E402

CULPRIT = 2
DELAY = f"rank={CULPRIT},where=backward,ms=8"


@dataclass(frozen=True)
class Case:
    name: str
    rules: tuple[str, ...]
    wanted: tuple[int, ...]
    sessions: int
    base_ms: float = 30.0
    steps: int = 150


def cases(runs: int, quiet_runs: int) -> list[Case]:
    delayed = [
        Case(f"8 ms at {where}, rank {rank}", (f"rank={rank},where={where},ms=8",), (rank,), runs)
        for where in ("input", "forward", "backward")
        for rank in (0, 2, 3)
    ]
    disturbances = {
        "clean": (),
        "rank 0 late by 300 ms every 20 steps": ("rank=0,where=input,ms=300,every=20",),
        "everyone 30 % slower": ("rank=all,where=forward,ms=9",),
        "rotating, 8 ms": ("rank=0,where=forward,ms=8,rotate=true",),
    }
    quiet = [Case(name, rules, (), quiet_runs) for name, rules in disturbances.items()]
    control = [Case(f"{name}, with a culprit", (*rules, DELAY), (CULPRIT,), quiet_runs)
               for name, rules in disturbances.items()]  # fmt: skip
    return [*delayed, *quiet, *control]


def run(case: Case, ranks: int) -> list[dict[str, Any]]:
    """The reports of the case's sessions.

    Raises:
        RuntimeError: the job failed, or a session left no report.
    """
    inject = [part for rule in case.rules for part in ("--inject", rule)]
    job = [
        str(HERE / "workload.py"),
        f"--sessions={case.sessions}",
        f"--steps={case.steps}",
        f"--base-ms={case.base_ms}",
    ]
    with tempfile.TemporaryDirectory() as records:
        environment = {**os.environ, "STRAGGLER_DIR": records, "OMP_NUM_THREADS": "1"}
        command = [str(Path(sys.executable).with_name("straggler")), "run", f"--nproc-per-node={ranks}", *inject, *job]
        limit = 60 + case.sessions * (5 + case.steps * (case.base_ms + 320) / 1e3)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit)
        if done.returncode != 0:
            raise RuntimeError(f"{case.name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        lines = [json.loads(line) for line in (Path(records) / "job.jsonl").read_text().splitlines()]
    reports = [line for line in lines if line["type"] == "report"]
    if len(reports) != case.sessions:
        raise RuntimeError(f"{case.name}: {len(reports)} reports of {case.sessions} sessions\n{done.stderr[-2000:]}")
    return reports


def summary(case: Case, reports: list[dict[str, Any]]) -> dict[str, Any]:
    named = [tuple(report["verdict"]["ranks"]) for report in reports]
    excess = [r["verdict"]["excess_ms"] for r in reports if r["verdict"]["excess_ms"] is not None]
    return {
        "case": case.name,
        "wanted": list(case.wanted),
        "right": sum(ranks == case.wanted for ranks in named),
        "runs": len(reports),
        "abstained": sum(report["verdict"]["kind"] == "abstain" for report in reports),
        "excess_ms": [round(of(excess), 2) for of in (min, statistics.median, max)] if excess else None,
        "self_ms": [round(statistics.median(r["ranks"][rank]["self_ms"] for r in reports), 2)
                    for rank in range(reports[0]["world_size"])],
        "collectives": sum(report["collectives"] for report in reports),
        "steps_compared": sum(report["steps"] for report in reports),
        "records_dropped": sum(report["records_dropped"] for report in reports),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--runs", type=int, default=10, help="sessions of each case with a culprit")
    parser.add_argument("--quiet-runs", type=int, default=5, help="sessions of each quiet case and control")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--small", action="store_true", help="instead: 1 ms in the backward of a 24 ms step, 400 steps")
    parser.add_argument("--json", default=None)
    args = parser.parse_args()
    chosen = cases(args.runs, args.quiet_runs)
    if args.small:
        chosen = [Case("1 ms at backward, rank 2", ("rank=2,where=backward,ms=1",), (), 1, 20.0, 400),
                  Case("clean", (), (), 1, 20.0, 400)]  # fmt: skip
    view = Table("case", "wanted", "right", "runs", "abstained", "excess ms (min, median, max)", "self ms by rank")
    rows = []
    for case in chosen:
        if args.only in case.name:
            rows.append(summary(case, run(case, args.ranks)))
            view.add_row(
                *(str(rows[-1][k]) for k in ("case", "wanted", "right", "runs", "abstained", "excess_ms", "self_ms"))
            )
            print(rows[-1], flush=True)
    Console(width=160).print(view)
    if args.json:
        dump(args.json, "naming", rows, vars(args))
    return 0 if all(row["right"] == row["runs"] for row in rows) or args.small else 1


if __name__ == "__main__":
    sys.exit(main())
