"""torch's own distributed tests on stock gloo and through torch_straggler, and the tests that do not end alike.

    .venv/bin/python tests/conformance/conformance.py                     all there is: `make conformance`
    .venv/bin/python tests/conformance/conformance.py --processes 2 --names intercepted

Two runs go on at a time; what they print is left in build/conformance. The exit code is 0 if the differences are those
that are listed: `test_ddp_logging_data_cpu` for the intercepted name, the table in README.md for `straggler_gloo`.
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from outcomes import differences, listed_differences, problems
from suite_run import HERE, LEFT, NAMES, SuiteRun, run_suite

# DDP logs the name of the backend's type. It has to be CUSTOM: one of type GLOO, DDP takes for torch's own class.
INTERCEPTED_DIFFERENCES = {"test_ddp_logging_data_cpu": "failed"}


def listed_for(name: str, processes: int) -> Mapping[str, str]:
    if name == "intercepted":
        return INTERCEPTED_DIFFERENCES
    return listed_differences((HERE / "README.md").read_text(), name, processes)


def print_counts(runs: Sequence[SuiteRun]) -> None:
    print(f"\n{runs[0].processes} processes    passed  failed  skipped  seconds")
    for run in runs:
        counts = "".join(f"{len(run.tests(kind)):8}" for kind in ("passed", "failed", "skipped"))
        print(f"{run.name:14}{counts}{run.seconds:9.0f}")
    for test, reason in runs[0].tests("failed").items():
        print(f"  fails on gloo itself: {test}: {reason}")


def judge(stock: SuiteRun, run: SuiteRun, listed: Mapping[str, str]) -> list[str]:
    """Prints where the two differ; gives what is wrong about that."""
    found = list(differences(stock.outcomes, run.outcomes))
    print(f"{run.name}: {len(found)} tests do not end as on gloo")
    for difference in found:
        print(f"  {'' if difference.test in listed else 'NOT LISTED: '}{difference}")
    wrong = [] if stock.tests("passed") else ["no test passes on gloo: nothing was compared"]
    return [f"{run.name}, {run.processes} processes: {text}" for text in wrong + problems(found, listed)]


# ---- Results ----


def as_json(runs: Sequence[SuiteRun]) -> dict[str, Any]:
    """The runs with one number of processes, with what is needed to repeat them."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "torch": version("torch"),
        "torch_straggler": version("torch_straggler"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "processes": runs[0].processes,
        "runs": {run.name: run_as_json(run, runs[0]) for run in runs},
    }


def run_as_json(run: SuiteRun, stock: SuiteRun) -> dict[str, Any]:
    skipped: dict[str, list[str]] = {}
    for test, reason in run.tests("skipped").items():
        skipped.setdefault(reason, []).append(test)
    return {
        "command": run.command.replace(f"{HERE.parents[1]}/", ""),
        "seconds": round(run.seconds),
        "counts": {kind: len(run.tests(kind)) for kind in ("passed", "failed", "skipped")},
        "differs_from_gloo": [str(difference) for difference in differences(stock.outcomes, run.outcomes)],
        "failed": run.tests("failed"),
        "skipped": skipped,
        "passed": list(run.tests("passed")),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="torch's own distributed tests, on gloo and through torch_straggler")
    names = [name for name in NAMES if name != "gloo"]
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4], metavar="N")
    parser.add_argument("--names", nargs="+", default=names, choices=names, help="run beside gloo; default: all")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEST", help="these tests")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="write N-processes.json there")
    options = parser.parse_args(arguments)

    wrong: list[str] = []
    for processes in options.processes:
        with ThreadPoolExecutor(2) as threads:
            begun = [threads.submit(run_suite, name, processes, options.only) for name in ("gloo", *options.names)]
            runs = [each.result() for each in begun]
        print_counts(runs)
        for run in runs[1:]:
            listed = listed_for(run.name, processes)
            asked = {test: kind for test, kind in listed.items() if test in (options.only or listed)}
            wrong += judge(runs[0], run, asked)
        if options.results:
            text = json.dumps(as_json(runs), indent=1)
            (options.results / f"{processes}-processes.json").write_text(text + "\n")
    for text in wrong:
        print(f"error: {text}", file=sys.stderr)
    if wrong:
        print(f"what the tests printed: {LEFT}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
