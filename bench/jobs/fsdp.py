"""Fully sharded data parallel training (FSDP2, `fully_shard`) on gloo: all-gathers, and reduce-scatters in backward."""

from __future__ import annotations

import argparse

import sessions
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

SLEEPS = 4  # a step: two layers, forward and backward


class Fsdp(sessions.Trained):
    def __init__(self, options: argparse.Namespace) -> None:
        width, seconds = options.width, options.base_ms / 1e3 / SLEEPS
        mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        blocks = [sessions.SleepingLayer(width, seconds, options.products) for _ in range(2)]
        model = nn.Sequential(*blocks, nn.Linear(width, 8))
        for block in blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        super().__init__(model)


if __name__ == "__main__":
    sessions.run(sessions.arguments(__doc__).parse_args(), Fsdp)
