"""Trials to rows: one row for every cell and subject. Pure, and of Python's standard library alone.

Spread is given as the quartiles beside the median. A ratio is taken of pairs, a measurement of the group and the one of
the bare backend in the same half of the same round, and its median and quartiles are over the pairs. So a disturbance
of the machine spoils one pair, and a drift moves the ratios of forward and backward halves in opposite directions.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .collective_kinds import COLLECTIVES, ELEMENT_BYTES
from .plan import Subject
from .trial import Measured, Trial

NS_PER_US = 1000.0
MISSED_NS = 200_000


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of a sample; of a sample of one, three times that value."""

    median: float
    q1: float
    q3: float


@dataclass(frozen=True)
class Row:
    """What one group did in one cell. Times are microseconds.

    Attributes:
        backend, role: the group that was measured; see plan.py.
        bytes: of the whole array, as nccl-tests counts them; rounded up to whole shares from what was asked for.
        skew_transfer_times: the arrival skew asked for, in units of `transfer_us`.
        transfer_us: the collective on the bare backend without arrival skew, measured first.
        arrival_skew_imposed_us: the product of the two.
        arrival_skew_us: what it really was, by the ranks' arrivals.
        arrival_error_us: how far the rank that missed its instant most was from it; median over the measurements.
        missed: measurements in which that was more than MISSED_NS, so that the pattern was not quite the one imposed.
        first_to_last_us: from the first arrival to the last completion.
        last_to_last_us: from the last arrival to the last completion.
        algorithm_bandwidth_gb_s, bus_bandwidth_gb_s: bytes over the median of `first_to_last_us`, as nccl-tests defines
            them; 1 GB is 10^9 bytes.
        ratio_to_bare: of `last_to_last_us`; None in the rows of the bare backend itself.
        difference_to_bare_us: of `last_to_last_us`; likewise.
        measurements: operations that the row rests on.
        bitwise_equal: whether all their results equal the bare backend's first result on every rank.
    """

    backend: str
    role: str
    collective: str
    bytes: int
    ranks: int
    pattern: str
    skew_transfer_times: float
    transfer_us: float
    arrival_skew_imposed_us: float
    arrival_skew_us: Spread
    arrival_error_us: float
    missed: int
    first_to_last_us: Spread
    last_to_last_us: Spread
    algorithm_bandwidth_gb_s: float
    bus_bandwidth_gb_s: float
    ratio_to_bare: Spread | None
    difference_to_bare_us: Spread | None
    measurements: int
    bitwise_equal: bool


def spread(values: Iterable[float]) -> Spread:
    """Quartiles by linear interpolation between the sorted values, as numpy's default."""
    sample = sorted(values)
    if len(sample) == 1:
        return Spread(sample[0], sample[0], sample[0])
    q1, median, q3 = statistics.quantiles(sample, n=4, method="inclusive")
    return Spread(median, q1, q3)


def rows(measured: Measured, ranks: int) -> list[Row]:
    """The rows of one cell, the bare backend's first."""
    return [_row(measured, subject, ranks) for subject in measured.trials]


def _row(measured: Measured, subject: Subject, ranks: int) -> Row:
    cell, trials = measured.cell, measured.trials[subject]
    bare = next(trials for subject, trials in measured.trials.items() if subject.role == "bare")
    kind = COLLECTIVES[cell.collective]
    whole = kind.elements(cell.bytes, ranks) * ELEMENT_BYTES
    first_to_last = _spread_us(trials, lambda trial: trial.first_to_last_ns)
    bandwidth = whole / (first_to_last.median * NS_PER_US)
    pairs = [(own.last_to_last_ns, other.last_to_last_ns) for own, other in zip(trials, bare, strict=True)]
    compared = subject.role != "bare"
    return Row(
        backend=subject.backend,
        role=subject.role,
        collective=cell.collective,
        bytes=whole,
        ranks=ranks,
        pattern=cell.pattern,
        skew_transfer_times=cell.skew,
        transfer_us=measured.transfer_ns / NS_PER_US,
        arrival_skew_imposed_us=cell.skew * measured.transfer_ns / NS_PER_US,
        arrival_skew_us=_spread_us(trials, lambda trial: trial.arrival_skew_ns),
        arrival_error_us=_spread_us(trials, lambda trial: trial.arrival_error_ns).median,
        missed=sum(trial.arrival_error_ns > MISSED_NS for trial in trials),
        first_to_last_us=first_to_last,
        last_to_last_us=_spread_us(trials, lambda trial: trial.last_to_last_ns),
        algorithm_bandwidth_gb_s=bandwidth,
        bus_bandwidth_gb_s=bandwidth * kind.bus_factor(ranks),
        ratio_to_bare=spread(own / other for own, other in pairs) if compared else None,
        difference_to_bare_us=spread((own - other) / NS_PER_US for own, other in pairs) if compared else None,
        measurements=len(trials),
        bitwise_equal=all(trial.equal for trial in trials),
    )


def _spread_us(trials: Sequence[Trial], value_ns: Callable[[Trial], int]) -> Spread:
    return spread(value_ns(trial) / NS_PER_US for trial in trials)
