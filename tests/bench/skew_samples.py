"""Hand-made trials and rows for the tests of the skew benchmark: two ranks, times that are easy to add up."""

from torch_straggler.bench.plan import Cell, Family, Subject
from torch_straggler.bench.rows import Row, rows
from torch_straggler.bench.trial import Measured, Trial

FAMILY = Family("gloo", "straggler_gloo")
BARE, CONTROL, WRAPPED = FAMILY.subjects


def trial(last_to_last_us: int, late_us: int = 100, missed_us: int = 0, equal: bool = True) -> Trial:
    """Rank 0 arrives at 1 ms, rank 1 `late_us` later; rank 1 completes `last_to_last_us` after its arrival."""
    arrivals = (1_000_000, 1_000_000 + late_us * 1000)
    return Trial(
        due_ns=(arrivals[0] - missed_us * 1000, arrivals[1]),
        arrival_ns=arrivals,
        completion_ns=(arrivals[1], arrivals[1] + last_to_last_us * 1000),
        equal=equal,
    )


def measured(
    subjects: dict[Subject, list[Trial]], collective: str = "all_reduce", pattern: str = "one_late"
) -> Measured:
    skew = 0.0 if pattern == "none" else 2.0
    return Measured(Cell(FAMILY, collective, 4096, pattern, skew), transfer_ns=50_000, trials=subjects)


def sample_rows(pattern: str = "one_late") -> list[Row]:
    """Bare 400 µs, control 410 µs, wrapped 420 µs."""
    trials = {BARE: [trial(400)] * 2, CONTROL: [trial(410)] * 2, WRAPPED: [trial(420)] * 2}
    return rows(measured(trials, pattern=pattern), ranks=2)
