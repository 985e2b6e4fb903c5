"""From trials to rows, with literal numbers."""

import pytest
from skew_samples import BARE, CONTROL, WRAPPED, measured, trial

from torch_straggler.bench.rows import Row, Spread, rows, spread
from torch_straggler.bench.trial import Trial


def by_role(found: list[Row]) -> dict[str, Row]:
    return {row.role: row for row in found}


def test_a_trial_measures_from_first_and_from_last_arrival() -> None:
    one = Trial(due_ns=(10, 30), arrival_ns=(10, 35), completion_ns=(90, 80), equal=True)
    assert one.arrival_skew_ns == 25
    assert one.first_to_last_ns == 80
    assert one.last_to_last_ns == 55
    assert one.arrival_error_ns == 5


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7.0], Spread(7.0, 7.0, 7.0)),
        ([4.0, 2.0], Spread(3.0, 2.5, 3.5)),
        ([5.0, 1.0, 3.0, 2.0, 4.0], Spread(3.0, 2.0, 4.0)),
    ],
)
def test_spread_is_median_and_quartiles(values: list[float], expected: Spread) -> None:
    assert spread(values) == expected


def test_a_row_has_times_in_microseconds_and_bandwidth_over_first_to_last() -> None:
    (row,) = rows(measured({BARE: [trial(412, late_us=100), trial(412, late_us=100)]}), ranks=2)
    assert (row.backend, row.role, row.collective, row.bytes, row.ranks) == ("gloo", "bare", "all_reduce", 4096, 2)
    assert (row.pattern, row.skew_transfer_times, row.transfer_us) == ("one_late", 2.0, 50.0)
    assert row.arrival_skew_imposed_us == 100.0
    assert row.arrival_skew_us == Spread(100.0, 100.0, 100.0)
    assert row.first_to_last_us == Spread(512.0, 512.0, 512.0)
    assert row.last_to_last_us == Spread(412.0, 412.0, 412.0)
    assert row.algorithm_bandwidth_gb_s == pytest.approx(0.008)  # 4096 bytes in 512 µs
    assert row.bus_bandwidth_gb_s == pytest.approx(0.008)  # the factor of two ranks is 1
    assert (row.ratio_to_bare, row.difference_to_bare_us) == (None, None)
    assert (row.measurements, row.bitwise_equal) == (2, True)


def test_ratios_are_of_pairs_so_that_one_disturbance_spoils_one_pair() -> None:
    found = by_role(
        rows(
            measured(
                {
                    BARE: [trial(100), trial(200), trial(100), trial(100)],
                    CONTROL: [trial(100), trial(200), trial(900), trial(100)],
                    WRAPPED: [trial(110), trial(220), trial(110), trial(120)],
                }
            ),
            ranks=2,
        )
    )
    assert found["control"].ratio_to_bare == Spread(1.0, 1.0, 3.0)
    assert found["control"].difference_to_bare_us == Spread(0.0, 0.0, 200.0)
    ratio = found["wrapped"].ratio_to_bare
    assert ratio is not None
    assert (ratio.median, ratio.q1, ratio.q3) == pytest.approx((1.1, 1.1, 1.125))
    assert found["wrapped"].difference_to_bare_us == Spread(15.0, 10.0, 20.0)


def test_one_unequal_result_makes_the_row_unequal() -> None:
    found = by_role(rows(measured({BARE: [trial(1)] * 2, WRAPPED: [trial(1), trial(1, equal=False)]}), ranks=2))
    assert found["bare"].bitwise_equal
    assert not found["wrapped"].bitwise_equal


def test_missed_instants_are_counted() -> None:
    (row,) = rows(measured({BARE: [trial(1, missed_us=200), trial(1, missed_us=201)]}), ranks=2)
    assert row.missed == 1
    assert row.arrival_error_us == 200.5
