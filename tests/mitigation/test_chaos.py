"""Ranks that stall and are stopped, control messages that are lost: 2,000 steps of what chaos.py does for 100,000."""

import os
from pathlib import Path

import chaos
import pytest
from program_table import CHAOS
from programs import Program

STEPS = 334  # of each of six programs
BACKEND = os.environ.get("MITIGATION_BACKEND", "straggler_gloo")


@pytest.mark.parametrize("program", [pytest.param(program, id=program.name) for program in CHAOS])
def test_no_rank_differs_at_any_step_and_no_gradient_is_lost(program: Program, tmp_path: Path) -> None:
    result = chaos.run(program, STEPS, tmp_path, BACKEND)
    assert not result.wrong, result.row()
    assert result.stops > 0
    assert BACKEND == "gloo" or (result.filled > 0 and result.late > 0), result.row()
