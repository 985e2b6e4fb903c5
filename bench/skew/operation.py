"""One collective at one size on one rank: its buffers, the call, and the result.

What a rank gives is drawn once, from a generator seeded with its rank, and copied into place before every call; what it
is to receive is filled with NaN. So a call that does nothing cannot pass for one that gave the right result.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from .collective_kinds import COLLECTIVES


class Operation:
    """Contract: `prepare`, then `call`, then `matches`, in turn. The root of a broadcast is rank 0."""

    def __init__(self, collective: str, asked_bytes: int, device: torch.device) -> None:
        rank, ranks = dist.get_rank(), dist.get_world_size()
        kind = COLLECTIVES[collective]
        elements = kind.elements(asked_bytes, ranks)
        generator = torch.Generator().manual_seed(rank)
        self._collective = collective
        self._device = device
        self._given = torch.randn(kind.sent(elements, ranks), generator=generator).to(device)
        self._buffer = torch.empty(kind.received(elements, ranks), device=device)
        self._in_place = not (kind.shares_sent or kind.shares_received)
        self._expected: torch.Tensor | None = None

    def prepare(self) -> None:
        if self._in_place:
            self._buffer.copy_(self._given)
        else:
            self._buffer.fill_(torch.nan)
        self.settle()

    def call(self, group: dist.ProcessGroup) -> None:
        """Runs the collective; returns when the result is there, on a device too."""
        if self._collective == "all_reduce":
            dist.all_reduce(self._buffer, group=group)
        elif self._collective == "broadcast":
            dist.broadcast(self._buffer, src=0, group=group)
        elif self._collective == "all_gather":
            dist.all_gather_into_tensor(self._buffer, self._given, group=group)
        else:
            dist.reduce_scatter_tensor(self._buffer, self._given, group=group)
        self.settle()

    def expect(self) -> None:
        """Takes the present result for the right one."""
        self._expected = self._buffer.clone()

    def matches(self) -> bool:
        """Whether the present result has the bits of the expected one; NaNs are compared as bits too."""
        assert self._expected is not None
        return torch.equal(self._buffer.view(torch.int32), self._expected.view(torch.int32))

    def settle(self) -> None:
        """Waits for the device; what is on the CPU is there already."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
