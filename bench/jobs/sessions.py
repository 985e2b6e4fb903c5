"""What the benches' training jobs share: samples, layers that sleep, and sessions of steps one after the other.

It has no word of ours. A step has an input (a DataLoader), a forward, a backward and an update, so that delays can be
put into each; each rank notes the ends of the four, as a script with timers of its own would. A session has a group and
a model of its own; several of them in one launch save the start of the processes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import DataLoader, Dataset

FIRST_PORT = 29650
BATCH = 16
PHASES = ("input", "forward", "backward", "update")
STEPS_A_LINE = 10
LEARNING_RATE = 0.01


class Trainer(Protocol):
    """One model in one session. `backward` takes what `forward` gave; where a library does both at once, `backward`
    does both and `forward` passes the batch on."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor: ...

    def backward(self, loss: torch.Tensor) -> None: ...

    def update(self) -> None: ...


class Samples(Dataset[torch.Tensor]):
    def __init__(self, count: int, width: int) -> None:
        self.count = count
        self.width = width

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((self.width,), float(index % 7))


class SleepingLayer(nn.Module):
    """Sleeps in forward, and as long in backward, for what a device would compute; `products` are computed in truth,
    matrix products of 256 x 256, in forward alone."""

    def __init__(self, width: int, seconds: float, products: int = 0) -> None:
        super().__init__()
        self.seconds = seconds
        self.products = products
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.seconds)
        square = torch.ones(256, 256)
        for _ in range(self.products):
            torch.mm(square, square)
        out: torch.Tensor = self.linear(x)
        if out.requires_grad:
            out.register_hook(lambda gradient: time.sleep(self.seconds))
        return out


def mean_square(out: torch.Tensor, _target: torch.Tensor | None = None) -> torch.Tensor:
    return out.square().mean()


class Trained:
    """A `Trainer` of a model whose loss is the mean square of what it gives; made of `model`, which the job builds."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        return mean_square(self.model(batch))

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()

    def update(self) -> None:
        self.optimizer.step()


# ---- Sessions --------------------------------------------------------------------------------------------------------


def arguments(text: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--base-ms", type=float, default=30.0)
    parser.add_argument("--width", type=int, default=64, help="of a layer; its gradient has 4 x width x width bytes")
    parser.add_argument(
        "--more-layers", type=int, default=0, help="that do not sleep, where the job has a use for them"
    )
    parser.add_argument("--products", type=int, default=0, help="computed in truth by each sleeping layer")
    parser.add_argument("--times", type=Path, default=None, help="folder for the ends of the phases of every step")
    return parser


def run(options: argparse.Namespace, build: Callable[[argparse.Namespace], Trainer]) -> None:
    """All sessions. Each rank leaves `times-<rank>.npy`: sessions x steps x phases, seconds, monotonic clock."""
    torch.set_num_threads(1)
    times = np.stack([session(number, options, build) for number in range(options.sessions)])
    if options.times is not None:
        np.save(options.times / f"times-{os.environ['RANK']}.npy", times)


def session(
    number: int, options: argparse.Namespace, build: Callable[[argparse.Namespace], Trainer]
) -> NDArray[np.float64]:
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # A store of its own: torch's gloo meets the keys of the session before on one that lives on.
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    store = dist.TCPStore(host, FIRST_PORT + number, is_master=rank == 0, use_libuv=True)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    torch.manual_seed(number)
    trainer = build(options)
    times = np.empty((options.steps, len(PHASES)))
    for step, batch in enumerate(DataLoader(Samples(BATCH * options.steps, options.width), batch_size=BATCH)):
        times[step, 0] = time.monotonic()
        loss = trainer.forward(batch)
        times[step, 1] = time.monotonic()
        trainer.backward(loss)
        times[step, 2] = time.monotonic()
        trainer.update()
        times[step, 3] = time.monotonic()
        if rank == 0 and step % STEPS_A_LINE == 0:
            print(f"session {number} step {step}", flush=True)
    del trainer
    dist.destroy_process_group()
    return times
