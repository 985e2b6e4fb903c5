"""What the mitigation bench calculates: delays, the bound, leads, and rows."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "mitigation"))
import scores
from workloads import WORKLOADS, World, duty

WORLD = World(ranks=8, steps=2000, seed=3)


def late(name: str, world: World = WORLD) -> np.ndarray[Any, Any]:
    """Bases by rank and step."""
    return np.stack([WORKLOADS[name].delays(world, rank).sum(axis=1) for rank in range(world.ranks)])


@pytest.mark.parametrize("name", WORKLOADS)
def test_delays_are_the_same_whenever_they_are_drawn(name: str) -> None:
    assert (late(name) == late(name)).all() and late(name).min() >= 0


def test_ranks_and_seeds_draw_differently() -> None:
    one, other = late("W1"), late("W1", World(8, 2000, 4))
    assert len({row.tobytes() for row in (*one, *other)}) == 16


def test_delays_have_the_means_that_the_models_state() -> None:
    assert late("W1").mean() == pytest.approx(0.02 * 20, rel=0.2)
    assert late("W5").mean() == pytest.approx(0.5, rel=0.05)
    assert late("W6").sum() / WORLD.steps == pytest.approx(3 * 0.15 * 1.25, rel=0.1)
    assert (late("W3") + 0.5).min() >= 0.5 and (late("W3") + 0.5).max() <= 0.5 * 3410 / 201 + 1e-9


def test_one_rank_a_step_is_late() -> None:
    assert (late("W2+2").sum(axis=0) == 2).all()
    assert set(np.nonzero(late("W2+1"))[0]) == set(range(8))


def test_always_the_same_rank_is_late_where_the_model_says_so() -> None:
    for name in ("W6", "W9"):
        assert set(np.nonzero(late(name))[0]) == {WORLD.victim}
    assert duty(WORLD, 0).sum() == 1000 and duty(WORLD, 1).sum() == 0


def test_the_bound_is_the_busiest_rank_and_synchronous_the_latest_in_each_step() -> None:
    assert scores.bounds(1.0, np.array([[3.0, 0.0], [0.0, 3.0]])) == (8.0, 5.0)


def test_steps_are_identical_if_all_ranks_that_ran_them_have_the_same_weights() -> None:
    hashes = np.array([[1, 2, 3], [1, 2, 4], [1, 0, 3]], dtype=np.uint32)
    ran = np.array([[True, True, True], [True, True, True], [True, False, True]])
    assert scores.identical_steps(hashes, ran) == (2, 3)


def test_a_lead_is_how_many_more_steps_the_slowest_other_rank_had_completed() -> None:
    slow = [1.0, 12.0, 13.0, 14.0]
    fast = [1.0, 2.0, 3.0, 11.0]
    delays = np.zeros((2, 4))
    delays[0, 1] = 10
    assert scores.lead_steps(np.array([slow, fast]), delays) == [2.0, 2.0]
    assert scores.lead_steps(np.array([slow, fast]), np.zeros((2, 4))) == []


def record(scheme: str, seed: int, seconds: float) -> scores.Record:
    return {
        "workload": "W1", "scheme": scheme, "ranks": 2, "seed": seed, "seconds": seconds, "healthy_ms": 50.0,
        "own_share": 0.1, "beyond_base": 0.2, "synchronous_s": 10.0, "bound_s": 5.0, "identical_steps": 9,
        "compared_steps": 10, "as_plain_steps": 10, "accuracy": 0.9, "test_loss": 0.5, "lead_steps": [],
        "mitigation": None, "lines": [],
    }  # fmt: skip


def test_a_run_is_compared_with_the_plain_run_of_its_round() -> None:
    records = [record("plain", 1, 10.0), record("carry", 1, 5.0), record("carry", 2, 8.0), record("plain", 2, 12.0)]
    row = next(row for row in scores.rows(records) if row["scheme"] == "carry")
    assert row["speed_up"] == [1.75, 1.5, 2.0]
    assert row["share_of_bound"] == [0.875, 0.75, 1.0]
    assert row["identical"] == [18, 20]


def test_what_failed_is_a_row_that_says_so() -> None:
    rows = scores.rows([{"workload": "W1", "scheme": "torchft", "seed": 1, "failed": "not installed\nmore"}])
    assert rows == [{"workload": "W1", "scheme": "torchft", "runs": 0, "failed": ["not installed"]}]
