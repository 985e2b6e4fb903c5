"""Data parallel training: DistributedDataParallel on gloo, a bucket a layer."""

from __future__ import annotations

import argparse

import sessions
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BUCKET_MB = 0.01  # less than a layer
SLEEPS = 4  # a step: two layers, forward and backward


class Ddp:
    def __init__(self, options: argparse.Namespace) -> None:
        width, seconds = options.width, options.base_ms / 1e3 / SLEEPS
        layers = [
            sessions.SleepingLayer(width, seconds, options.products),
            nn.ReLU(),
            sessions.SleepingLayer(width, seconds, options.products),
            nn.Linear(width, width),
            *(nn.Linear(width, width) for _ in range(options.more_layers)),
            nn.Linear(width, 8),
        ]
        self.model = DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=BUCKET_MB)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        return sessions.mean_square(self.model(batch))

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def update(self) -> None:
        self.optimizer.step()


if __name__ == "__main__":
    sessions.run(sessions.arguments(__doc__).parse_args(), Ddp)
