"""Pipeline parallel training: torch.distributed.pipelining, a stage a rank, four micro-batches (GPipe) on gloo."""

from __future__ import annotations

import argparse

import sessions
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

MICRO_BATCHES = 4


class Pipeline:
    """The whole pipeline takes about `base_ms` a step, however many stages it has."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.rank, ranks = dist.get_rank(), dist.get_world_size()
        slots = 2 * (MICRO_BATCHES + ranks - 1)  # of a micro-batch's sleep, forward and backward, on the critical path
        block = sessions.SleepingLayer(options.width, options.base_ms / 1e3 / slots, options.products)
        stage_model = nn.Sequential(block, nn.Linear(options.width, options.width))
        self.last = self.rank == ranks - 1
        stage = PipelineStage(stage_model, self.rank, ranks, torch.device("cpu"))
        self.schedule = ScheduleGPipe(stage, n_microbatches=MICRO_BATCHES, loss_fn=sessions.mean_square)
        self.optimizer = torch.optim.SGD(stage_model.parameters(), lr=sessions.LEARNING_RATE)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        return batch

    def backward(self, batch: torch.Tensor) -> None:
        if self.rank == 0:
            self.schedule.step(batch)
        elif self.last:
            self.schedule.step(target=batch)
        else:
            self.schedule.step()

    def update(self) -> None:
        self.optimizer.step()


if __name__ == "__main__":
    sessions.run(sessions.arguments(__doc__).parse_args(), Pipeline)
