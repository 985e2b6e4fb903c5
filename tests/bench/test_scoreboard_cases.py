"""What the scoreboard runs: the matrix, its seeds, its order, and the rules of its sessions."""

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "scoreboard"))
import cases

from torch_straggler.injection_rule import delays, parse

MATRIX = list(cases.matrix(cases.seeds("score", 1)))


def test_there_are_at_least_300_runs_and_none_twice() -> None:
    assert len({case.key for case in MATRIX}) == len(MATRIX) >= 300


def test_every_delay_is_run_on_every_job_and_size_it_is_for() -> None:
    found = {(case.delay, case.job, case.ranks) for case in MATRIX}
    for name, delay in cases.DELAYS.items():
        for job, sizes in cases.LAYOUTS.items():
            assert {(name, job, ranks) for ranks in sizes if ranks in (delay.ranks or sizes)} <= found


def test_first_middle_and_last_are_the_culprit() -> None:
    assert [cases.culprits(ranks) for ranks in (2, 4, 8)] == [[0, 1], [0, 2, 3], [0, 4, 7]]


def test_thresholds_are_scored_on_other_seeds_than_they_were_chosen_on() -> None:
    assert not set(cases.seeds("tune", 50)) & set(cases.seeds("score", 50))
    tuned = {case.key for case in cases.matrix(cases.seeds("tune", 2))}
    assert not tuned & {case.key for case in cases.matrix(cases.seeds("score", 2))}


def test_a_case_is_the_same_whenever_it_is_made_and_begins_within_bounds() -> None:
    assert list(cases.matrix([1])) == MATRIX
    begins = [case.begins for case in MATRIX]
    assert min(begins) >= cases.EARLIEST and max(begins) < cases.LATEST and len(set(begins)) > 20


INJECTED = [case for case in MATRIX if case.ranks == 4 and case.truth.blames and case.truth.means == "injection"]


@pytest.mark.parametrize("case", INJECTED, ids=lambda case: case.key)
def test_the_rules_of_a_case_delay_its_culprit_since_its_step_and_nobody_else(case: cases.Case) -> None:
    parts = cases.MICRO_BATCHES.get(case.job, 1)
    (rule,) = parse(";".join(case.rules()))
    assert [r for r in range(case.ranks) if delays(rule, r, case.ranks, case.begins)] == [case.culprit]
    assert not delays(rule, case.culprit or 0, case.ranks, case.begins - 1)
    assert rule.ms * (parts if rule.where == "backward" else 1) == pytest.approx(case.share * case.base_ms)


def test_every_case_is_in_one_launch_with_others_of_its_job_ranks_and_means() -> None:
    launches = cases.launches(MATRIX)
    assert Counter(case for launch in launches for case in launch.cases) == Counter(MATRIX)
    for launch in launches:
        assert len(launch.cases) <= cases.SESSIONS_A_LAUNCH
        assert {(c.job, c.ranks, c.truth.means) for c in launch.cases} == {(launch.job, launch.ranks, launch.means)}


def test_wherever_it_is_stopped_the_layouts_have_been_run_about_equally_often() -> None:
    launches = [launch for launch in cases.launches(MATRIX) if launch.means == "injection"]
    for stop in range(1, len(launches)):
        runs = Counter((launch.job, launch.ranks) for launch in launches[:stop])
        numbers = [runs[job, ranks] for job, sizes in cases.LAYOUTS.items() for ranks in sizes]
        assert max(numbers) - min(numbers) <= 1 or stop > 0.6 * len(launches)  # then the shorter lists have ended


def test_a_launch_has_several_delays() -> None:
    first = [launch for launch in cases.launches(MATRIX) if launch.means == "injection"][:11]
    assert all(len({case.delay for case in launch.cases}) >= 3 for launch in first)
