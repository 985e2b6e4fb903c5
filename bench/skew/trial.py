"""What was stamped: one operation on all ranks, and all operations of one cell.

Every stamp is CLOCK_MONOTONIC in nanoseconds. It is one clock for all processes of a host, so stamps of different ranks
are compared as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from .plan import Cell, Subject


@dataclass(frozen=True)
class Trial:
    """One operation. Tuples are indexed by rank.

    Attributes:
        due_ns: when each rank was to arrive.
        arrival_ns: the instant before the call.
        completion_ns: the instant after it, with the result there.
        equal: whether every rank's result equals, bit for bit, the first one of the bare backend in this cell.
    """

    due_ns: tuple[int, ...]
    arrival_ns: tuple[int, ...]
    completion_ns: tuple[int, ...]
    equal: bool

    @property
    def arrival_skew_ns(self) -> int:
        return max(self.arrival_ns) - min(self.arrival_ns)

    @property
    def first_to_last_ns(self) -> int:
        """From the first arrival to the last completion."""
        return max(self.completion_ns) - min(self.arrival_ns)

    @property
    def last_to_last_ns(self) -> int:
        """From the last arrival to the last completion: what is left to wait for when everybody is there."""
        return max(self.completion_ns) - max(self.arrival_ns)

    @property
    def arrival_error_ns(self) -> int:
        """By how much a rank missed its instant, at most."""
        return max(abs(arrival - due) for arrival, due in zip(self.arrival_ns, self.due_ns, strict=True))


@dataclass(frozen=True)
class Measured:
    """All trials of a cell, in the order in which they ran: for each subject two a round, one in either half."""

    cell: Cell
    transfer_ns: int
    trials: dict[Subject, list[Trial]]
