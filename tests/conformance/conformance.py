"""torch's own distributed tests on stock gloo and through torch_straggler, and the tests that do not end alike.

    .venv/bin/python tests/conformance/conformance.py                     all there is: `make conformance`
    .venv/bin/python tests/conformance/conformance.py --processes 2 --names intercepted

Each run is one pytest over `distributed_suite.py`, in a process group of its own that is ended with it; two run at a time.
What they print and write is left in build/conformance. The exit code is 0 if the differences are those that are listed:
`test_ddp_logging_data_cpu` for the intercepted name, the table in README.md for `straggler_gloo`.
"""

import argparse
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from outcomes import Difference, Outcome, differences, listed_differences, problems, read_junit

HERE = Path(__file__).parent
LEFT = HERE.parents[1] / "build" / "conformance"
SECONDS_A_TEST = 60
SECONDS_A_RUN = 1200

# DDP logs the name of the backend's type, and the type must be CUSTOM: torch reads any other backend of type GLOO as its own.
INTERCEPTED_DIFFERENCES = {"test_ddp_logging_data_cpu": "failed"}


@dataclass(frozen=True)
class Name:
    """A name under which the suite runs, and the class of the backend that it must stand for."""

    tested_class: str
    environment: Mapping[str, str]


NAMES = {
    "gloo": Name("ProcessGroupGloo", {"BACKEND": "gloo"}),
    "intercepted": Name("StragglerBackend", {"BACKEND": "gloo", "STRAGGLER_INTERCEPT": "gloo"}),
    "straggler_gloo": Name("StragglerBackend", {"BACKEND": "straggler_gloo"}),
}


@dataclass(frozen=True)
class Run:
    name: str
    processes: int
    seconds: float
    command: str
    outcomes: dict[str, Outcome]

    def tests(self, kind: str) -> dict[str, str]:
        """The tests of this kind of outcome, with their reasons."""
        return {test: outcome.reason for test, outcome in sorted(self.outcomes.items()) if outcome.kind == kind}


# ---- Running ----


def run_suite(name: str, processes: int, only: str) -> Run:
    """Runs the suite once.

    Raises:
        OSError, ValueError: it left no outcomes.
    """
    LEFT.mkdir(parents=True, exist_ok=True)
    junit, log = (LEFT / f"{name}-{processes}.{kind}" for kind in ("xml", "log"))
    junit.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", str(HERE / "distributed_suite.py"), f"--junitxml={junit}"]
    command += ["-q", "-rfE", "--tb=short", "-p", "no:cacheprovider", f"--timeout={SECONDS_A_TEST + 30}"]
    command += ["-k", only] if only else []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, log.open("wb") as output:
        settings = environment(name, processes, folder)
        process = subprocess.Popen(
            command, env=settings, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            process.wait(SECONDS_A_RUN)
        except subprocess.TimeoutExpired:
            print(f"{name}, {processes} processes: not done after {SECONDS_A_RUN} s, and ended", file=sys.stderr)
        finally:
            with suppress(ProcessLookupError):  # nothing is left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    seconds = time.monotonic() - begun
    shown = " ".join(f"{key}={value}" for key, value in NAMES[name].environment.items())
    return Run(name, processes, seconds, f"{shown} WORLD_SIZE={processes} {shlex.join(command[1:])}", read_junit(junit))


def environment(name: str, processes: int, folder: str) -> dict[str, str]:
    """Without what would steer torch or us; everything that the tests leave lies in `folder`."""
    steering = ("STRAGGLER_", "TORCH", "PYTORCH", "GLOO_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_", "CI")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(steering)}
    return kept | {
        **NAMES[name].environment,
        "TESTED_CLASS": NAMES[name].tested_class,
        "WORLD_SIZE": str(processes),
        "TEMP_DIR": folder,
        "TMPDIR": folder,
        "INIT_METHOD": f"file://{folder}/init",
        "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(SECONDS_A_TEST),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


# ---- Judging ----


def listed_for(name: str, processes: int) -> dict[str, str]:
    if name == "intercepted":
        return INTERCEPTED_DIFFERENCES
    return listed_differences((HERE / "README.md").read_text(), processes)


def print_counts(runs: Sequence[Run]) -> None:
    print(f"\n{runs[0].processes} processes    passed  failed  skipped  seconds")
    for run in runs:
        counts = "".join(f"{len(run.tests(kind)):8}" for kind in ("passed", "failed", "skipped"))
        print(f"{run.name:14}{counts}{run.seconds:9.0f}")
    for test, reason in runs[0].tests("failed").items():
        print(f"  fails on gloo itself: {test}: {reason}")


def judge(stock: Run, run: Run, only: str) -> list[str]:
    """Prints where the two differ; gives what is wrong about that."""
    found = list(differences(stock.outcomes, run.outcomes))
    listed = listed_for(run.name, run.processes)
    if only:
        listed = {test: kind for test, kind in listed.items() if test in stock.outcomes}
    print(f"{run.name}: {len(found)} tests do not end as on gloo")
    for difference in found:
        print(f"  {'' if difference.test in listed else 'NOT LISTED: '}{difference}")
    wrong = [] if stock.tests("passed") else ["no test passes on gloo: nothing was compared"]
    return [f"{run.name}, {run.processes} processes: {text}" for text in wrong + problems(found, listed)]


# ---- Results ----


def as_json(runs: Sequence[Run]) -> dict[str, Any]:
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


def run_as_json(run: Run, stock: Run) -> dict[str, Any]:
    skipped: dict[str, list[str]] = {}
    for test, reason in run.tests("skipped").items():
        skipped.setdefault(reason, []).append(test)
    found: list[Difference] = list(differences(stock.outcomes, run.outcomes))
    return {
        "command": re.sub(rf"{re.escape(str(HERE.parents[1]))}/", "", run.command),
        "seconds": round(run.seconds),
        "counts": {kind: len(run.tests(kind)) for kind in ("passed", "failed", "skipped")},
        "differs_from_gloo": [str(difference) for difference in found],
        "failed": run.tests("failed"),
        "skipped": skipped,
        "passed": list(run.tests("passed")),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="torch's own distributed tests, on gloo and through torch_straggler")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4], metavar="N")
    names = [name for name in NAMES if name != "gloo"]
    parser.add_argument("--names", nargs="+", default=names, choices=names)
    parser.add_argument("--only", default="", metavar="WORDS", help="some tests, as pytest's -k")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="write N-processes.json there")
    options = parser.parse_args(arguments)

    wrong: list[str] = []
    for processes in options.processes:
        with ThreadPoolExecutor(2) as threads:
            waiting = [threads.submit(run_suite, name, processes, options.only) for name in ("gloo", *options.names)]
            runs = [each.result() for each in waiting]
        print_counts(runs)
        for run in runs[1:]:
            wrong += judge(runs[0], run, options.only)
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
