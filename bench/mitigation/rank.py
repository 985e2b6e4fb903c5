"""One rank of one run: trains, is late as drawn, and leaves what it saw in the run's folder.

The loop is that of an unmodified script; the delays lie between its statements, outside the model. The first steps are
a warm-up in which nobody is late: mitigation is armed in it, and a healthy step is measured in its second half. Times
are on the monotonic clock, which the ranks of one machine share.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import gc
import json
import os
import signal
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import schemes
import torch
import torch.distributed as dist
import workloads
from torch import nn
from torch.distributed.algorithms.join import Join

BATCH = 16  # samples a rank
WIDTH = 24
FREEZE = "freeze"  # the key that asks to be stopped


@dataclass(frozen=True)
class Run:
    """One scheme on one workload, once."""

    workload: str
    scheme: str
    ranks: int
    steps: int
    warm_up: int
    base_s: float
    seed: int

    @property
    def world(self) -> workloads.World:
        return workloads.World(self.ranks, self.steps, self.seed)

    def steps_of(self, rank: int) -> int:
        return self.steps - rank % 3 if workloads.WORKLOADS[self.workload].join else self.steps


def main(rank: int, run: Run, port: int, folder: Path, lighthouse: str) -> None:
    """Entry of the process."""
    workload = workloads.WORKLOADS[run.workload]
    work(rank, run, port, folder, lighthouse, workload.staleness, lambda: model(workload.buffers), Rank)


def work(
    rank: int,
    run: Run,
    port: int,
    folder: Path,
    lighthouse: str,
    staleness: int,
    make: Callable[[], nn.Module],
    kind: type[Rank],
) -> None:
    """Standard error goes to a file in `folder`, and on SIGUSR1 every thread's stack too."""
    descriptor = os.open(folder / f"rank-{rank}.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    faulthandler.register(signal.SIGUSR1)
    os.environ |= schemes.environment(run.scheme, staleness) | {"TORCHFT_LIGHTHOUSE": lighthouse}
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=schemes.TIMEOUT)
    torch.manual_seed(run.seed)
    module = make()
    training = schemes.make(run.scheme, module, rank, run.ranks, run.warm_up, store)
    rank_ = kind(rank, run, training, store, folder)
    rank_.train()
    told = rank_.evaluate(module) | {"ledger": ledger(run.scheme)}
    training.close()
    told["closed"] = time.monotonic()
    np.savez(folder / f"rank-{rank}.npz", ends=rank_.ends, late=rank_.late, hashes=rank_.hashes)
    (folder / f"rank-{rank}.json").write_text(json.dumps(told))


def model(norm: bool) -> nn.Module:
    """Small: what a rank does itself is to be little beside what it sleeps."""
    return nn.Sequential(
        nn.Linear(64, WIDTH), *([nn.BatchNorm1d(WIDTH)] if norm else []), nn.ReLU(), nn.Linear(WIDTH, 10)
    )


def ledger(scheme: str) -> dict[str, Any] | None:
    if not schemes.is_mitigated(scheme):
        return None
    import torch_straggler

    found = torch_straggler.ledger()
    return None if found is None else dataclasses.asdict(found)


def sleep(seconds: float) -> float:
    """Seconds really slept."""
    if seconds <= 0:
        return 0.0
    begun = time.monotonic()
    time.sleep(seconds)
    return time.monotonic() - begun


def checksum(parameters: Iterable[nn.Parameter]) -> int:
    """Of all bits, in order. An averager gives a parameter other storage, so that none can be looked at in advance."""
    crc = 0
    for parameter in parameters:
        crc = zlib.crc32(parameter.detach().numpy(), crc)
    return crc


class Rank:
    def __init__(self, rank: int, run: Run, training: schemes.Training, store: dist.Store, folder: Path) -> None:
        self.rank, self.run, self.training, self.store = rank, run, training, store
        self.workload = workloads.WORKLOADS[run.workload]
        data = np.load(folder.parent / "digits.npz")
        self.images, self.labels = torch.from_numpy(data["images"]), torch.from_numpy(data["labels"])
        self.test_images, self.test_labels = (torch.from_numpy(data[name]) for name in ("test_images", "test_labels"))
        own = len(self.labels) // run.ranks  # each rank has a part of the samples
        steps = run.warm_up + run.steps
        drawn = np.random.default_rng([run.seed, 2, rank]).integers(own, size=(steps, BATCH))
        self.batches = torch.from_numpy(drawn * run.ranks + rank)
        delays = workloads.WORKLOADS[run.workload].delays(run.world, rank) * run.base_s
        self.delays = np.concatenate([np.zeros((run.warm_up, workloads.POINTS)), delays])
        self.parameters = list(training.model.parameters())
        self.ends = np.full(steps, np.nan)
        self.late = np.zeros(steps)  # seconds really slept beyond the base
        self.hashes = np.zeros(steps, dtype=np.uint32)
        self.processor = np.zeros(steps)  # seconds of this process until the end of the step

    def train(self) -> None:
        gc.collect()
        gc.disable()  # a collection would be a delay that nobody drew
        count = self.run.warm_up + self.run.steps_of(self.rank)
        with Join([self.training.model]) if self.workload.join else contextlib.nullcontext():
            for step in range(count):
                self._ask_to_be_stopped(step)
                self._step(step)

    def _step(self, step: int) -> None:
        batch = self.batches[step]
        delays = self.delays[step]
        self.training.zero()
        self.late[step] += sleep(delays[workloads.BEFORE_FORWARD])
        sleep(self.run.base_s * self.workload.base)
        loss = nn.functional.cross_entropy(self.training.model(self.images[batch]), self.labels[batch])
        self.late[step] += sleep(delays[workloads.BEFORE_BACKWARD])
        loss.backward()
        self.training.step()
        if self.workload.loss:
            dist.all_reduce(loss.detach())
        self.hashes[step] = checksum(self.parameters)
        self.late[step] += sleep(delays[workloads.AFTER_STEP])
        self.processor[step] = time.process_time()
        self.ends[step] = time.monotonic()

    def _ask_to_be_stopped(self, step: int) -> None:
        due = self.run.warm_up + self.run.steps // 3
        if self.workload.frozen_s and self.rank == self.run.world.victim and step == due:
            self.store.set(FREEZE, str(os.getpid()))

    def evaluate(self, module: nn.Module) -> dict[str, Any]:
        """Loss and accuracy on what was not trained on, with this rank's own weights."""
        module.eval()
        with torch.no_grad():
            scores = module(self.test_images)
        half = self.run.warm_up // 2
        return {
            "test_loss": nn.functional.cross_entropy(scores, self.test_labels).item(),
            "accuracy": (scores.argmax(1) == self.test_labels).float().mean().item(),
            "own_processor_s": (self.processor[self.run.warm_up - 1] - self.processor[half - 1])
            / (self.run.warm_up - half),  # a step
        }
