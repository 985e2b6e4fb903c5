"""Processes for the tests in Python, with a time limit and an environment without our settings.

Whatever registers a backend, makes a group or changes torch is done in such a process, never in pytest's own.
"""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from python_process import ONE_RANK, Run, environment

SECONDS = 90


def _run(command: list[str], settings: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment(**settings), cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Runs code in a fresh Python, with the given settings; the code may use the functions of ONE_RANK.

    `before_torch` is run before torch is imported, and with it the autoload.
    """

    def run(code: str, before_torch: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        program = textwrap.dedent(code)
        if "init(" in program or "backend_of(" in program:
            program = ONE_RANK + program
        return _run([sys.executable, "-c", before_torch + program], settings, tmp_path)

    return run


@pytest.fixture
def succeeds(python: Run) -> Callable[..., str]:
    """As `python`, for code that has to succeed; gives its standard output."""

    def run(code: str, before_torch: str = "", **settings: str) -> str:
        done = python(code, before_torch, **settings)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def command(tmp_path: Path) -> Run:
    """Runs an installed command, such as `straggler`, from the environment of this Python."""

    def run(name: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return _run([str(Path(sys.executable).parent / name), *arguments], settings, tmp_path)

    return run
