"""Ranks that stall and are stopped, control messages that are lost: 2,000 steps of what chaos.py does for 100,000."""

import os

import chaos
import pytest
from program_table import CHAOS

STEPS = 334  # of each of six programs
BACKEND = os.environ.get("MITIGATION_BACKEND", "straggler_gloo")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> chaos.Outcome:
    return chaos.run(CHAOS, STEPS, tmp_path_factory.mktemp("chaos"), BACKEND)


@pytest.mark.parametrize("number", [pytest.param(n, id=program.name) for n, program in enumerate(CHAOS)])
def test_no_rank_differs_at_any_step_and_no_gradient_is_lost(number: int, outcome: chaos.Outcome) -> None:
    result = outcome.results[number]
    assert not result.wrong, result.row()
    assert outcome.stops > 0
    assert BACKEND == "gloo" or (result.filled > 0 and result.late > 0), result.row()
