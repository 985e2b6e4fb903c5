"""A job for the naming bench: DDP on gloo, steps of mostly sleep, several sessions one after the other.

It has no word of ours. Its steps have an input (a DataLoader), a forward and a backward part, so that delays can be put
into each; the gradients of its layers are reduced in buckets of their own. Rank 0 leaves the time at which each step
ended, on the monotonic clock, in the file that `--times` names.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

FIRST_PORT = 29650
BUCKET_MB = 0.01  # less than a layer


class Samples(Dataset[torch.Tensor]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((64,), float(index % 7))


class SleepingLayer(nn.Module):
    """Sleeps in forward, and as long in backward."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.seconds)
        out = self.linear(x)
        out.register_hook(lambda gradient: time.sleep(self.seconds))
        return out


def session(number: int, steps: int, base_ms: float, more_layers: int) -> list[float]:
    # A store of its own: torch's gloo meets the keys of the session before on one that lives on.
    store = dist.TCPStore("127.0.0.1", FIRST_PORT + number, is_master=os.environ["RANK"] == "0", use_libuv=True)
    dist.init_process_group("gloo", store=store, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
    layers = [SleepingLayer(base_ms / 4e3), nn.ReLU(), SleepingLayer(base_ms / 4e3), nn.Linear(64, 64)]
    layers += [nn.Linear(64, 64) for _ in range(more_layers)] + [nn.Linear(64, 8)]
    model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=BUCKET_MB)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    ends = []
    for batch in DataLoader(Samples(16 * steps), batch_size=16):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        ends.append(time.monotonic())
    dist.destroy_process_group()
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--base-ms", type=float, default=30.0)
    parser.add_argument("--more-layers", type=int, default=0, help="each a collective a step")
    parser.add_argument("--times", type=Path, default=None)
    args = parser.parse_args()
    torch.set_num_threads(1)
    times = [session(number, args.steps, args.base_ms, args.more_layers) for number in range(args.sessions)]
    if args.times is not None and os.environ["RANK"] == "0":
        args.times.write_text(json.dumps(times))


if __name__ == "__main__":
    main()
