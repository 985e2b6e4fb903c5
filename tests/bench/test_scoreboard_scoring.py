"""The figures and the gates of the scoreboard, on runs made up so that each figure is known."""

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "scoreboard"))
import scoring


def verdict(kind: str, step: int | None, *ranks: int, cause: str = "not_attributed", line: int | None = None) -> Any:
    return {"kind": kind, "ranks": list(ranks), "cause": cause, "step": step, "line_step": line}


def run(delay: str, *verdicts: dict[str, Any], **other: Any) -> scoring.Result:
    """400 steps of 40 ms, windows of 10; a culprit is rank 1, late by 6 ms since step 100."""
    blames = scoring.DELAYS[delay].blames
    return {
        "key": delay, "delay": delay, "share": 0.2, "job": "ddp", "ranks": 4, "culprit": 1 if blames else None,
        "seed": 1, "steps": 400, "since": 100, "injected_ms": 6.0 if blames else None, "longer_ms": 6.0,
        "step_ms": 40.0, "counted_steps": 400, "window": 10, "verdicts": list(verdicts), "windows": 40,
        "incomplete": 0, "collectives": 4 * 1200, "time_lost_share": None, "seconds": 16.0, "noise_step_ms": None,
        "noise_window_ms": None,
    } | other  # fmt: skip


NAMED = verdict("straggler", 129, 1)

# ---- Namings ---------------------------------------------------------------------------------------------------------


def test_a_rank_counts_once_however_often_its_verdict_changes() -> None:
    result = run("D1", NAMED, verdict("straggler", 159, 1, 2), verdict("cleared", 199, 1), verdict("straggler", 299, 1))
    assert [(n.rank, n.step) for n in scoring.namings(result)] == [(1, 129), (2, 159)]


def test_a_naming_is_right_if_the_rank_was_late_by_then() -> None:
    early, other = run("D1", verdict("straggler", 89, 1)), run("D1", verdict("straggler", 129, 0))
    assert scoring.hit(run("D1", NAMED)) is not None
    assert scoring.hit(early) is None and scoring.hit(other) is None
    assert scoring.precision([run("D1", NAMED), early, other, run("clean", NAMED)]) == scoring.Share(1, 4)


def test_a_slow_link_does_not_make_its_rank_the_right_one() -> None:
    assert scoring.hit(run("D5", NAMED, culprit=1)) is None


def test_what_has_to_be_named_is_1_ms_and_2_percent_in_400_steps() -> None:
    assert scoring.has_to_be_named(run("D1", injected_ms=1.0, step_ms=50.0))
    assert not scoring.has_to_be_named(run("D1", injected_ms=0.9, step_ms=20.0))
    assert not scoring.has_to_be_named(run("D1", injected_ms=1.1, step_ms=60.0))
    assert not scoring.has_to_be_named(run("D1", steps=399))
    assert not scoring.has_to_be_named(run("clean"))


def test_a_delay_that_is_not_injected_is_as_long_as_the_steps_became_longer() -> None:
    assert scoring.has_to_be_named(run("D4 quota", injected_ms=None, longer_ms=1.0))
    assert not scoring.has_to_be_named(run("D4 quota", injected_ms=None, longer_ms=0.9))


def test_recall_is_of_those_that_have_to_be_named() -> None:
    results = [run("D1", NAMED), run("D1"), run("D1", injected_ms=0.3), run("clean")]
    assert scoring.recall(results) == scoring.Share(1, 2)


def test_a_victim_is_any_other_rank_at_any_time_beside_a_culprit() -> None:
    results = [run("D1", NAMED), run("D1", verdict("straggler", 50, 2), NAMED), run("clean", NAMED)]
    assert scoring.victims(results) == scoring.Share(1, 2)


# ---- Shares and bounds -----------------------------------------------------------------------------------------------


def test_an_interval_is_the_exact_one() -> None:
    low, high = scoring.Share(0, 60).interval
    assert low == 0 and high == pytest.approx(1 - 0.025 ** (1 / 60))
    assert scoring.Share(0, 0).interval == (0, 1) and scoring.Share(0, 0).value is None


@settings(deadline=None)  # the machine may be busy
@given(part=st.integers(0, 50), rest=st.integers(0, 50))
def test_an_interval_holds_the_share_and_every_chance_outside_makes_it_rare(part: int, rest: int) -> None:
    whole = part + rest
    share = scoring.Share(part, whole)
    low, high = share.interval
    assert 0 <= low <= (share.value or 0) <= high <= 1
    if low > 0:
        assert stats.binom.sf(part - 1, whole, low) == pytest.approx(0.025, abs=1e-6)
    if whole and high < 1:
        assert stats.binom.cdf(part, whole, high) == pytest.approx(0.025, abs=1e-6)


def test_with_no_alarm_the_bound_is_3_in_what_was_seen() -> None:
    silent = scoring.quiet([run("clean", collectives=4 * 60_000), run("D8", collectives=4 * 40_000), run("D1", NAMED)])
    assert (silent.runs, silent.alarms, silent.collectives) == (2, 0, 100_000)
    assert silent.upper_rate == pytest.approx(-math.log(0.05))


def test_with_one_alarm_the_bound_leaves_5_percent_for_one_or_none() -> None:
    rate = scoring.quiet([run("clean", NAMED, collectives=4 * 100_000)]).upper_rate
    assert stats.poisson.cdf(1, rate) == pytest.approx(0.05)


def test_windows_abstained_are_those_not_judged_or_under_an_abstention() -> None:
    assert scoring.abstained_windows(run("clean")) == 0
    assert scoring.abstained_windows(run("clean", windows=30, incomplete=4)) == 14
    abstains = run("clean", verdict("abstain", 199), verdict("none", 299))
    assert scoring.abstained_windows(abstains) == 10
    assert scoring.abstained_windows(run("clean", verdict("abstain", 199))) == 20
    nothing = run("clean", verdict("abstain", None), counted_steps=0, windows=0)
    assert scoring.abstained_windows(nothing) == scoring.expected_windows(nothing) == 40


# ---- Time to name ----------------------------------------------------------------------------------------------------


def test_time_to_name_begins_with_the_first_late_step() -> None:
    result = run("D1", NAMED)
    assert scoring.windows_to_name(result) == 3 and scoring.steps_to_name(result) == 30
    assert scoring.windows_to_name(run("D1")) is None


def test_steps_that_the_detector_counts_otherwise_are_scaled_to_the_jobs() -> None:
    four_times = run("D1", verdict("straggler", 519, 1), counted_steps=1600)
    assert scoring.steps_to_name(four_times) == 30


def test_the_least_delay_is_that_of_the_cusum_in_theory() -> None:
    assert scoring.least_delay(2.0, 1.0, 100_000) == pytest.approx(math.log(100_000) / 2)


def test_the_least_delay_is_about_what_a_cusum_takes() -> None:
    """The CUSUM of normal samples with threshold ln(arl) takes the bound and a part that does not grow with it."""
    random, shift, arl, delays = np.random.default_rng(1), 0.5, 1e6, []
    for _ in range(400):
        score, steps = 0.0, 0
        while score < math.log(arl):
            score = max(0.0, score + shift * (random.normal(shift) - shift / 2))
            steps += 1
        delays.append(steps)
    assert np.mean(delays) == pytest.approx(scoring.least_delay(shift, 1.0, arl), rel=0.1)


def test_no_bound_is_below_one_sample() -> None:
    result = run("D1", noise_window_ms=0.2, noise_step_ms=1.5)
    assert scoring.bound_windows(result) == 1.0
    assert scoring.bound_steps(result) == pytest.approx(math.log(1e6) * 2 * 1.5**2 / 36)
    assert scoring.bound_steps(run("D1")) is None


def test_noise_is_that_of_medians_about_their_mean_before_and_after() -> None:
    random = np.random.default_rng(2)
    excess = random.normal(0, 1.5, 20_000) + np.where(np.arange(20_000) < 5_000, 0, 6)
    assert scoring.noise(excess, 5_000, 1) == pytest.approx(1.5, rel=0.03)
    medians = np.median(random.normal(0, 1.5, (20_000, 10)), axis=1)
    assert scoring.noise(excess, 5_000, 10) == pytest.approx(medians.std(), rel=0.05)
    assert scoring.noise(excess[:50], 20, 10) is None


def test_noise_of_few_windows_is_no_smaller_for_their_number() -> None:
    """Two parts of four windows, 0, 2, 0 and 2 ms: 1 from their mean, and four thirds since the mean was fitted."""
    part = np.repeat([0.0, 2.0, 0.0, 2.0], 5)
    excess = np.concatenate((np.zeros(10), part, part + 7))
    assert scoring.noise(excess, 30, 5) == pytest.approx(math.sqrt(4 / 3))


# ---- Cause, cost -----------------------------------------------------------------------------------------------------


def test_a_cause_that_is_not_told_is_neither_right_nor_wrong() -> None:
    results = [
        run("D3", verdict("straggler", 129, 1, cause="host_input")),
        run("D3", NAMED),
        run("D1", verdict("straggler", 129, 1, cause="host_launch")),
        run("D3"),
    ]
    assert scoring.causes_right(results) == scoring.Share(1, 2)
    assert scoring.confusion(results) == {
        ("host_input", "host_input"): 1,
        ("host_input", "not_attributed"): 1,
        ("host_input", "not named"): 1,
        ("not_attributed", "host_launch"): 1,
    }


def test_the_cause_that_counts_is_the_last() -> None:
    result = run("D3", NAMED, verdict("straggler", 199, 1, cause="host_input"))
    assert scoring.told(result) == "host_input"


def test_a_slow_link_is_the_networks_and_no_ranks() -> None:
    right, blamed, silent = run("D5", verdict("network", 129, 1)), run("D5", NAMED), run("D5")
    assert [scoring.told(r) for r in (right, blamed, silent)] == ["network", "a rank", "nothing"]
    assert scoring.causes_right([right, blamed, silent]) == scoring.Share(1, 2)
    assert scoring.quiet([right, blamed, silent]).alarms == 1


def test_lost_time_is_compared_with_all_late_steps() -> None:
    """300 steps by 6 ms are 1.8 s; 12 % of 16 s are 1.92."""
    assert scoring.lost_error(run("D1", NAMED, time_lost_share=0.12)) == pytest.approx(1.92 / 1.8 - 1)
    assert scoring.lost_error(run("D1", time_lost_share=0.12)) is None


# ---- Gates -----------------------------------------------------------------------------------------------------------


def test_a_detector_that_is_right_passes_every_gate() -> None:
    quick = verdict("straggler", 102, 1, cause="host_input")
    late = run("D3", quick, time_lost_share=1.8 / 16, noise_step_ms=2.4, noise_window_ms=0.2)
    results = [late, run("clean", collectives=4 * 100_000)]
    assert [gate.what for gate in scoring.gates(results) if not gate.passed] == []


@pytest.mark.parametrize(
    ("broken", "gate"),
    [
        (run("D1", time_lost_share=None), "recall"),
        (run("clean", NAMED), "ranks named where nobody is to blame"),
        (run("clean", NAMED), "precision"),
        (run("clean", windows=30), "windows abstained there"),
        (run("D1", verdict("straggler", 129, 2), NAMED), "runs in which a victim was named"),
        (run("D3", verdict("straggler", 102, 1, cause="host_launch")), "cause right, where one was told"),
        (run("D1", NAMED, noise_window_ms=0.2), "time to name over the bound, by windows"),
        (run("D1", NAMED, noise_step_ms=1.5), "time to name over the bound, by steps"),
        (run("D1", NAMED), "steps to name 20 %"),
        (run("D1", NAMED, time_lost_share=0.12), "lost time, told over injected: error"),
    ],
)
def test_each_gate_fails_for_what_it_is_about(broken: scoring.Result, gate: str) -> None:
    assert not next(found.passed for found in scoring.gates([broken]) if found.what == gate)


def test_no_gate_is_passed_by_no_runs() -> None:
    assert not any(gate.passed for gate in scoring.gates([]))
