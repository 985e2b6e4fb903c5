"""One run of torch's own distributed tests: a pytest over `distributed_suite.py`, and what became of each test.

It has a process group of its own, which is ended with it, and a folder of its own for what the tests write.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from outcomes import Outcome, read_junit

HERE = Path(__file__).parent
LEFT = HERE.parents[1] / "build" / "conformance"
SECONDS_A_TEST = 60
SECONDS_A_RUN = 1200


@dataclass(frozen=True)
class Name:
    """How the suite is run, and the class of the backend that must be under test."""

    tested_class: str
    environment: Mapping[str, str]


NAMES = {
    "gloo": Name("ProcessGroupGloo", {"BACKEND": "gloo"}),
    "intercepted": Name("StragglerBackend", {"BACKEND": "gloo", "STRAGGLER_INTERCEPT": "gloo"}),
    "straggler_gloo": Name("StragglerBackend", {"BACKEND": "straggler_gloo"}),
    # What the suite skips by the name is run all the same.
    "taken for gloo": Name("StragglerBackend", {"BACKEND": "straggler_gloo", "SKIPS_OF": "gloo"}),
}


@dataclass(frozen=True)
class SuiteRun:
    name: str
    processes: int
    seconds: float
    command: str
    outcomes: Mapping[str, Outcome]

    def tests(self, kind: str) -> dict[str, str]:
        """The tests of this kind of outcome, with their reasons."""
        return {test: outcome.reason for test, outcome in sorted(self.outcomes.items()) if outcome.kind == kind}


def run_suite(name: str, processes: int, only: Sequence[str] = (), left: Path = LEFT, **settings: str) -> SuiteRun:
    """Runs all tests, or those in `only`. What pytest prints and writes is left in `left`.

    Raises:
        OSError, ValueError: it left no outcomes.
    """
    left.mkdir(parents=True, exist_ok=True)
    junit, log = (left / f"{name.replace(' ', '_')}-{processes}.{kind}" for kind in ("xml", "log"))
    junit.unlink(missing_ok=True)
    suite = str(HERE / "distributed_suite.py")
    command = [sys.executable, "-m", "pytest", f"--junitxml={junit}", f"--timeout={SECONDS_A_TEST + 30}"]
    command += ["-q", "-rfE", "--tb=short", "-p", "no:cacheprovider"]
    command += [f"{suite}::DistributedSuite::{test}" for test in only] or [suite]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment(name, processes, folder) | settings,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            process.wait(SECONDS_A_RUN)
        except subprocess.TimeoutExpired:
            print(f"{name}, {processes} processes: not done after {SECONDS_A_RUN} s, and ended", file=sys.stderr)
        finally:
            with suppress(ProcessLookupError):  # nothing is left of it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    seconds = time.monotonic() - begun
    settings_shown = [f"{key}={value}" for key, value in NAMES[name].environment.items()]
    shown = shlex.join([*settings_shown, f"WORLD_SIZE={processes}", *command])
    return SuiteRun(name, processes, seconds, shown, read_junit(junit))


def environment(name: str, processes: int, folder: str) -> dict[str, str]:
    """Without what would steer torch, pytest or us; everything that the tests leave lies in `folder`."""
    ours = ("STRAGGLER_", "SKIPS_OF", "PYTEST_")
    torchs = ("TORCH", "PYTORCH", "GLOO_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours + torchs) and key != "CI"}
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
