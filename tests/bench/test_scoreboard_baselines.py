"""The rules of other tools, on sessions made up by hand: whom each names, and what each cannot see."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "scoreboard"))
import baselines
from seen import PHASES, Seen, seen

STEPS, SINCE = 300, 110
FORWARD, BACKWARD = 15.0, 15.0


def session(where: str | None = None, ms: float = 6.0, ranks: int = 4, culprit: int = 1, noise: float = 0.1) -> Seen:
    """Data parallel training: whoever is late before or in the backward, all backwards end together, as each rank
    waits there for the last. One collective a step, entered when a rank has done its own part of the backward."""
    random = np.random.default_rng(3)
    own = {
        "input": random.normal(1.0, noise / 10, (ranks, STEPS)),
        "forward": random.normal(FORWARD, noise, (ranks, STEPS)),
        "backward": random.normal(BACKWARD, noise, (ranks, STEPS)),
    }
    if where is not None:
        own[where][culprit, SINCE:] += ms
    arrived = sum(own.values())
    backward = arrived.max(axis=0) - own["input"] - own["forward"]
    update = random.normal(0.5, 0.01, (ranks, STEPS))
    phases = np.stack([own["input"], own["forward"], backward, update], axis=2)
    lateness = (arrived - arrived.min(axis=0)).T
    return Seen(phases, lateness, np.arange(STEPS))


def named(rule: str, of: Seen, job: str = "ddp", multiplier: float = 1.0) -> list[int]:
    return [naming.rank for naming in baselines.named(rule, of, job, multiplier)]


def test_what_is_seen_comes_from_the_ends_of_the_phases() -> None:
    times = np.array([[[1.0, 1.2, 1.5, 1.6], [1.7, 1.9, 2.2, 2.3]]] * 2)
    found = seen(times, np.array([[1.3, 1.31], [1.95, 2.0]]))
    assert found.phase("forward") == pytest.approx(np.full((2, 2), 200.0))
    assert np.isnan(found.phase("input")[:, 0]).all() and found.phase("input")[0, 1] == pytest.approx(100.0)
    assert found.step_ms[0, 1] == pytest.approx(700.0)
    assert found.lateness == pytest.approx(np.array([[0, 10], [0, 50]])) and found.step_of.tolist() == [0, 1]
    assert PHASES == ("input", "forward", "backward", "update")


@pytest.mark.parametrize("rule", [rule for rule in baselines.RULES if rule != "median and MAD"])
def test_a_healthy_session_names_nobody(rule: str) -> None:
    assert named(rule, session()) == []


def test_the_deviation_of_four_ranks_that_differ_by_chance_names_one_of_them_now_and_then() -> None:
    assert named("median and MAD", session()) != []


def test_a_relative_score_is_the_fastest_over_the_ranks_own() -> None:
    assert named("NVRx, relative score 0.75", session("forward", ms=6.0)) == [1]  # 15 / 21 = 0.71
    assert named("NVRx, relative score 0.75", session("forward", ms=4.0)) == []  # 15 / 19 = 0.79
    assert named("NVRx, relative score 0.75", session("backward", ms=60.0)) == []


def test_phase_timers_do_not_see_a_delay_in_the_backward() -> None:
    """traceml issue 252: the ranks' backwards are equally long."""
    for rule in ("relative 1.2 or 5 ms", "traceml, 10 % of the step", "mean x 2.0"):
        assert named(rule, session("backward", ms=10.0)) == []


def test_traceml_names_the_rank_that_waits_least_in_the_backward() -> None:
    assert named("traceml, 10 % of the step", session("forward", ms=6.0)) == [1]  # 6 of 37.5 ms: 16 %
    assert named("traceml, 10 % of the step", session("forward", ms=3.0)) == []  # 3 of 34.5 ms: 9 %
    assert named("traceml, 10 % of the step", session("input", ms=6.0)) == [1]


def test_where_parameters_are_sharded_forward_waits_too() -> None:
    phases = session().phases.copy()
    phases[1:, :, PHASES.index("forward")] += 6.0
    waits_in_forward = Seen(phases, np.empty((0, 4)), np.empty(0, dtype=np.int64))
    assert named("traceml, 10 % of the step", waits_in_forward, "ddp") == []
    assert named("traceml, 10 % of the step", waits_in_forward, "fsdp") == [0]


def test_a_phase_is_compared_with_the_ranks_median() -> None:
    assert named("relative 1.2 or 5 ms", session("forward", ms=2.5)) == []
    assert named("relative 1.2 or 5 ms", session("forward", ms=3.5)) == [1]


def test_twice_the_mean_of_the_steps_never_fires_where_steps_are_synchronous() -> None:
    assert named("mean x 2.0", session("forward", ms=200.0)) == []
    alone = session().phases.copy()
    alone[2] *= 3.5  # 3.5 of a mean of (3 + 3.5) / 4 = 1.6
    assert named("mean x 2.0", Seen(alone, np.empty((0, 4)), np.empty(0, dtype=np.int64))) == [2]


def test_deviations_are_measured_against_the_other_ranks() -> None:
    phases = np.zeros((4, STEPS, 4))
    phases[:, :, 1] = np.array([10.0, 11.0, 12.0, 13.0])[:, None]  # median 11.5, scaled deviation 1.48
    assert named("median and MAD", Seen(phases, np.empty((0, 4)), np.empty(0, dtype=np.int64))) == []
    phases[3, :, 1] = 16.1  # above 11.5 + 3 x 1.48
    assert named("median and MAD", Seen(phases, np.empty((0, 4)), np.empty(0, dtype=np.int64))) == [3]


def test_the_last_to_start_is_named_wherever_the_delay_is() -> None:
    for where in ("input", "forward", "backward"):
        assert named("TraceLens, last start", session(where, ms=2.0)) == [1]


def test_a_rank_outside_of_a_group_is_not_its_last() -> None:
    lateness = np.array([[0.0, 1.0, np.nan], [np.nan, 0.0, 1.0]] * 30)
    found = baselines.last_shares(Seen(np.ones((3, 60, 4)), lateness, np.arange(60)), slice(0, 60))
    assert found == pytest.approx([0, 0.5, 1])


# ---- Change points ---------------------------------------------------------------------------------------------------


def test_a_run_begins_anew_where_the_mean_moves() -> None:
    random = np.random.default_rng(4)
    values = np.concatenate((random.normal(40, 1, 150), random.normal(48, 1, 100)))
    lengths = baselines.run_lengths(values)
    assert lengths[149] > 140 and 95 <= lengths[249] <= 105
    ((begin, noticed),) = baselines.changes(values)
    assert abs(begin - 150) <= 2 and 150 <= noticed <= 156


def test_a_change_that_is_noticed_late_is_dated_when_it_began() -> None:
    random = np.random.default_rng(4)
    values = np.concatenate((random.normal(40, 1, 150), random.normal(42, 1, 100)))
    ((begin, noticed),) = baselines.changes(values)
    assert abs(begin - 150) <= 3 and noticed >= begin + 4


def test_the_most_probable_run_is_that_of_the_closed_form() -> None:
    """With a hazard of almost nothing nothing changes, and each value makes the run longer by one."""
    values = np.random.default_rng(5).normal(0, 1, 50)
    assert baselines.run_lengths(values, hazard=1e-300).tolist() == list(range(1, 51))


def test_a_change_names_who_is_then_last() -> None:
    for rule in ("change point", "change point, verified"):
        assert named(rule, session("backward", ms=6.0, noise=0.3)) == [1]


def test_verification_wants_a_tenth_more() -> None:
    small = session("backward", ms=2.0)  # of 31.5 ms: 6 %
    assert named("change point", small) == [1] and named("change point, verified", small) == []


# ---- Thresholds ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)  # the machine may be busy
@given(ms=st.floats(0, 40), where=st.sampled_from(("input", "forward", "backward")))
@pytest.mark.parametrize("rule", [name for name in baselines.RULES if not name.startswith("change")])
def test_a_higher_threshold_names_nobody_more(rule: str, ms: float, where: str) -> None:
    late = session(where, ms=ms, noise=1.0)
    lower, higher = (set(named(rule, late, multiplier=m)) for m in (0.5, 2.0))
    assert higher <= lower
