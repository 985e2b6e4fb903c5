"""Tensor by data parallel training: pairs of ranks share each block's matrices, the pairs its gradients (FSDP2)."""

from __future__ import annotations

import argparse

import sessions
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

TENSOR_RANKS = 2
SLEEPS = 4  # a step: two blocks, forward and backward


class Block(nn.Module):
    """A feed-forward block with a residual; it sleeps once in forward and once in backward."""

    def __init__(self, width: int, seconds: float, products: int) -> None:
        super().__init__()
        self.up = sessions.SleepingLayer(width, seconds, products)
        self.down = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


class TensorByData(sessions.Trained):
    def __init__(self, options: argparse.Namespace) -> None:
        width, seconds = options.width, options.base_ms / 1e3 / SLEEPS
        ranks = torch.distributed.get_world_size()
        mesh = init_device_mesh("cpu", (ranks // TENSOR_RANKS, TENSOR_RANKS), mesh_dim_names=("data", "tensor"))
        blocks = [Block(width, seconds, options.products) for _ in range(2)]
        for block in blocks:
            plan = {"up.linear": ColwiseParallel(), "down": RowwiseParallel()}
            parallelize_module(block, mesh["tensor"], plan)
            fully_shard(block, mesh=mesh["data"])
        super().__init__(nn.Sequential(*blocks))


if __name__ == "__main__":
    sessions.run(sessions.arguments(__doc__).parse_args(), TensorByData)
