"""The collectives that are measured: their buffers and their bus bandwidth.

`bytes` means what it means in nccl-tests: the whole array, so what a rank receives from an all_gather and what it gives
to a reduce_scatter. The factors are those of nccl-tests' doc/PERFORMANCE.md (github.com/NVIDIA/nccl-tests):

    algorithm bandwidth = bytes / time          bus bandwidth = factor * algorithm bandwidth

Example: all_reduce of 1,000,000 bytes over 4 ranks in 1 ms is 1 GB/s, and 1.5 GB/s on the bus, as every byte has to
cross it 2 * 3 / 4 times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ELEMENT_BYTES = 4  # float32


@dataclass(frozen=True)
class CollectiveKind:
    """One collective.

    Attributes:
        shares_sent, shares_received: whether a rank gives, or gets, one share of the array instead of all of it.
        bus_factor: ranks to the factor of the bus bandwidth.
    """

    name: str
    shares_sent: bool
    shares_received: bool
    bus_factor: Callable[[int], float]

    def elements(self, asked_bytes: int, ranks: int) -> int:
        """Elements of the whole array: as asked for, rounded up to whole elements, or whole shares if it is cut."""
        step = ELEMENT_BYTES * (ranks if self.shares_sent or self.shares_received else 1)
        return -(-asked_bytes // step) * step // ELEMENT_BYTES

    def sent(self, elements: int, ranks: int) -> int:
        return elements // ranks if self.shares_sent else elements

    def received(self, elements: int, ranks: int) -> int:
        return elements // ranks if self.shares_received else elements


COLLECTIVES = {
    kind.name: kind
    for kind in (
        CollectiveKind("all_reduce", False, False, lambda ranks: 2 * (ranks - 1) / ranks),
        CollectiveKind("all_gather", True, False, lambda ranks: (ranks - 1) / ranks),
        CollectiveKind("reduce_scatter", False, True, lambda ranks: (ranks - 1) / ranks),
        CollectiveKind("broadcast", False, False, lambda ranks: 1.0),
    )
}
