"""Data parallel training: DistributedDataParallel on gloo, a bucket a layer."""

from __future__ import annotations

import argparse

import sessions
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BUCKET_MB = 0.01  # less than a layer
SLEEPS = 4  # a step: two layers, forward and backward


class Ddp(sessions.Trained):
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
        super().__init__(DistributedDataParallel(nn.Sequential(*layers), bucket_cap_mb=BUCKET_MB))


if __name__ == "__main__":
    sessions.run(sessions.arguments(__doc__).parse_args(), Ddp)
