"""Arrival patterns: the shares of the arrival skew, in whole nanoseconds."""

import pytest

from torch_straggler.bench.patterns import PATTERNS, delays_ns


@pytest.mark.parametrize(
    ("pattern", "delays"),
    [
        ("none", (0, 0, 0, 0)),
        ("one_late", (0, 0, 0, 900)),
        ("ascending", (0, 300, 600, 900)),
        ("half_late", (0, 0, 900, 900)),
    ],
)
def test_four_ranks_are_late_by_their_shares(pattern: str, delays: tuple[int, ...]) -> None:
    assert delays_ns(pattern, 4, 900, round_number=0) == delays


def test_the_smaller_half_of_an_odd_number_is_late() -> None:
    assert delays_ns("half_late", 5, 10, round_number=0) == (0, 0, 0, 10, 10)


def test_two_ranks_are_enough_for_every_pattern() -> None:
    assert {pattern: sorted(delays_ns(pattern, 2, 10, 0)) for pattern in PATTERNS} == {
        "none": [0, 0],
        "one_late": [0, 10],
        "ascending": [0, 10],
        "random": [0, 10],
        "half_late": [0, 10],
    }


def test_random_reaches_from_nothing_to_the_whole_skew() -> None:
    for round_number in range(50):
        delays = delays_ns("random", 4, 1_000_000, round_number)
        assert (min(delays), max(delays)) == (0, 1_000_000)


def test_random_is_the_same_in_every_run_and_another_in_every_round() -> None:
    assert delays_ns("random", 4, 1_000_000, 0) == (1_000_000, 138_365, 0, 437_968)
    assert delays_ns("random", 4, 1_000_000, 1) == (895_250, 1_000_000, 0, 791_210)
