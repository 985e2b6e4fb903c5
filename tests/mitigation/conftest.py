"""What the tests of mitigation run: the programs that the chosen tests ask for, once; or code on some ranks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from program_runs import Outcomes
from program_table import BY_NAME
from programs import Program
from ranks import Job, run_ranks


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    asked = {
        value.name
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        for value in item.callspec.params.values()
        if isinstance(value, Program)
    }
    outcomes = Outcomes(tmp_path_factory.mktemp("programs"))
    chosen = [program for program in BY_NAME.values() if program.name in asked]
    outcomes.run(sorted(chosen, key=lambda program: -program.ranks))  # ranks that are not needed any more end
    return outcomes


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    """Runs code on some ranks and waits for it: see `run_ranks`. May be called several times."""
    started = 0

    def run(code: str, ranks: int = 4, **options: Any) -> Job:
        nonlocal started
        started += 1
        return run_ranks(tmp_path / f"job{started}", code, ranks, **options)

    return run
