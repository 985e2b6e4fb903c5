"""A script on several ranks, in a folder of the test's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ranks import Job, run_beside_gloo, run_ranks


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    """Runs code on some ranks and waits for it: see `run_ranks`. May be called several times."""
    started = 0

    def run(code: str, ranks: int = 2, **options: Any) -> Job:
        nonlocal started
        started += 1
        return run_ranks(tmp_path / f"job{started}", code, ranks, **options)

    return run


@pytest.fixture
def beside_gloo(tmp_path: Path) -> Callable[..., tuple[Job, Job]]:
    """Runs code on straggler_gloo and on gloo: see `run_beside_gloo`."""

    def run(code: str, ranks: int = 2, **options: Any) -> tuple[Job, Job]:
        return run_beside_gloo(tmp_path, code, ranks, **options)

    return run
