"""Faults are put into a script that runs beside its twin on gloo."""

from pathlib import Path
from typing import Any

import alike
import pytest
from ranks import Job


@pytest.fixture
def beside_gloo(tmp_path: Path) -> alike.BesideGloo:
    """Runs code on straggler_gloo and on gloo at once; gives both jobs, ours first."""

    def run(code: str, ranks: int = 2, **options: Any) -> tuple[Job, Job]:
        return alike.beside_gloo(tmp_path, code, ranks, **options)

    return run
