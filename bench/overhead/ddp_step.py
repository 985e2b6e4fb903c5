"""What the wrapper adds to a DDP step: wrapped against bare, on one and the same inner gloo object.

    .venv/bin/python bench/overhead/ddp_step.py --json bench/overhead/results/ddp_step.json

Two DDP models of equal weights train on the same batches in the same processes: one on the group whose backend is the
wrapper, one on a group that holds the wrapper's inner backend itself; a third, on the bare group again, is the control.
They take turns, step by step where steps are long enough (`common.measure`): what the machine does beside falls on
neighbours alike. The slowest rank's time counts. Reported, with 95 % bootstrap intervals: the ratio of the wrapped to
the mean of both bare ones, the control's to the bare one (of two, not three values: its interval is some 15 % wider),
and whether the weights are equal to the bit in the end.

The session's own threads work whoever's turn it is, so the ratio does not show them. `threads_at_most` bounds what they
can add: their processor time as a share of the time of the wrapped steps alone, on the rank where it is largest. About
10 minutes with the default rounds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from common import Row, dump, interval, measure, ratio_interval, run_on_ranks, table
from sklearn.datasets import load_digits
from torch import nn
from torch.distributed import distributed_c10d as c10d
from torch.nn.parallel import DistributedDataParallel


def digits_model() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def mlp_model() -> nn.Module:
    """10.5 million parameters."""
    return nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048),
                         nn.ReLU(), nn.Linear(2048, 928), nn.ReLU(), nn.Linear(928, 10))  # fmt: skip


# Model, steps a block, samples a rank, how many times the rounds: short steps vary more and need more of them. The same
# small model on a large batch computes for some 30 ms and sends little, as most steps do: it varies least.
MODELS = {
    "digits": (digits_model, 4, 64, 5),
    "digits, large batch": (digits_model, 1, 800, 12),
    "MLP, 10 M parameters": (mlp_model, 1, 32, 1),
}


def bare_group(name: str, inner: Any) -> Any:
    """A group that holds `inner` and nothing else, known to torch as any group is."""
    world = dist.group.WORLD
    _, store = c10d._world.pg_map[world]
    group = dist.ProcessGroup(store, world.rank(), world.size())
    kind = dist.ProcessGroup.BackendType.CUSTOM
    group._set_default_backend(kind)
    group._register_backend(torch.device("cpu"), kind, inner)
    group._set_group_name(name)
    c10d._world.pg_map[group] = ("gloo", store)
    c10d._world.pg_names[group] = name
    c10d._world.pg_group_ranks[group] = {rank: rank for rank in range(world.size())}
    return group


class Trainer:
    def __init__(self, make: Any, group: Any, batch: int) -> None:
        torch.manual_seed(0)
        self.model = DistributedDataParallel(make(), process_group=group)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        images, labels = load_digits(return_X_y=True)
        first = dist.get_rank() * batch
        self.images = torch.tensor(images[first : first + batch] / 16, dtype=torch.float32)
        self.labels = torch.tensor(labels[first : first + batch])

    def steps(self, count: int) -> float:
        """Seconds a step, on this rank."""
        begin = time.perf_counter()
        for _ in range(count):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(self.images), self.labels).backward()
            self.optimizer.step()
        return (time.perf_counter() - begin) / count

    def weights(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.model.parameters()])


def threads() -> set[str]:
    """Those that nobody has given a name: torch names its own."""
    task = Path("/proc/self/task")
    own = (task / str(os.getpid()) / "comm").read_text()
    return {name for name in os.listdir(task) if (task / name / "comm").read_text() == own}


def processor_seconds(names: set[str]) -> float:
    return sum(int(Path(f"/proc/self/task/{name}/schedstat").read_text().split()[0]) for name in names) / 1e9


def compare(name: str, groups: dict[str, Any], rounds: int, sessions_threads: set[str]) -> Row:
    make, steps, batch, times_rounds = MODELS[name]
    trainers = {which: Trainer(make, group, batch) for which, group in groups.items()}
    before = processor_seconds(sessions_threads)
    times = measure(lambda which: trainers[which].steps(steps), rounds * times_rounds)
    taken = torch.tensor(processor_seconds(sessions_threads) - before)
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return {
        "case": name,
        "bare_ms": interval([1e3 * t for t in times["bare"]]),
        "ratio": ratio_interval(times["wrapped"], times["bare"], times["control"]),
        "control_ratio": ratio_interval(times["control"], times["bare"]),
        "threads_at_most": round(taken.item() / (2 * steps * sum(times["wrapped"])), 5),
        "weights_equal": torch.equal(trainers["bare"].weights(), trainers["wrapped"].weights()),
    }


def worker(rank: int, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    before = threads()
    dist.init_process_group("straggler_gloo", rank=rank, world_size=args.ranks)
    sessions_threads = threads() - before
    inner = dist.group.WORLD._get_backend(torch.device("cpu")).inner
    bare = bare_group("bare", inner)
    groups = {"bare": bare, "wrapped": dist.group.WORLD, "control": bare}
    rows = [compare(name, groups, args.rounds, sessions_threads) for name in MODELS]
    dist.destroy_process_group()
    if rank == 0:
        table("DDP step, wrapped against bare", rows, sys.stdout)
        if args.json:
            dump(args.json, "ddp_step", rows, vars(args))


if __name__ == "__main__":
    run_on_ranks(worker, __doc__, ranks=2, rounds=150)
