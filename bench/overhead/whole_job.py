"""What a step of a whole job costs with all of it on, threads, exchange, detector and records, against bare gloo.

    .venv/bin/python bench/overhead/whole_job.py --case sleeping --ranks 4 --json ...
    .venv/bin/python bench/overhead/whole_job.py --case computing --ranks 2 --json ...

One job a turn, in the same processes: a group is made, a DDP model trains, the group is destroyed; so the session and
its threads live in the wrapped jobs alone. A turn is bare gloo, `straggler_gloo` with STRAGGLER_DIR set, or bare gloo
again as a control (`common.measure`). A job's figure is the mean over its steps, without the first ones and without the
fastest and the slowest tenth, of the slowest rank, waits included. Steps mostly sleep, on twice as many ranks as there
are cores here, where our threads have to find a core too; or they compute for some 20 ms on as many ranks as there are
cores. About 8 minutes each.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist
from common import Row, dump, interval, measure, ratio_interval, run_on_ranks, table
from scipy import stats
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 80
SKIPPED = 20  # the first ones: set-up, DDP's rebuilding of its buckets


class Sleep(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(0.015)
        x.register_hook(lambda gradient: time.sleep(0.015))
        return x


def sleeping() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), Sleep(), nn.Linear(64, 8))


def computing() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 8))


# Model, samples a rank.
CASES: dict[str, tuple[Callable[[], nn.Module], int]] = {"sleeping": (sleeping, 8), "computing": (computing, 800)}


class Jobs:
    """Jobs one after the other; each meets on a part of the store of its own."""

    def __init__(self, rank: int, ranks: int, store: dist.Store) -> None:
        self.rank, self.ranks, self.store = rank, ranks, store
        self.number = 0

    def run(self, case: str, which: str) -> float:
        """Seconds of a step on this rank."""
        self.number += 1
        make, samples = CASES[case]
        backend = "straggler_gloo" if which == "wrapped" else "gloo"
        store = dist.PrefixStore(str(self.number), self.store)
        dist.init_process_group(backend, store=store, rank=self.rank, world_size=self.ranks)
        torch.manual_seed(0)
        model = DistributedDataParallel(make())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        batch = torch.ones(samples, 64)
        ends = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            ends.append(time.perf_counter())
        dist.destroy_process_group()
        return float(stats.trim_mean(np.diff(ends[SKIPPED:]), 0.1))


def measured(jobs: Jobs, case: str, rounds: int) -> dict[str, list[float]]:
    """As `measure`, with the slowest rank of each turn: groups come and go, so the ranks tell over the store."""

    def timed(which: str) -> float:
        own = jobs.run(case, which)
        turn = dist.PrefixStore(f"time {jobs.number}", jobs.store)
        turn.set(str(jobs.rank), repr(own))
        return max(float(turn.get(str(rank))) for rank in range(jobs.ranks))

    return measure(timed, rounds, warm_up=1)


def worker(rank: int, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    logging.getLogger("torch_straggler").setLevel(logging.ERROR)
    os.environ["STRAGGLER_DIR"] = args.folder
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=rank == 0)
    jobs = Jobs(rank, args.ranks, store)
    times = measured(jobs, args.case, args.rounds)
    row: Row = {
        "case": f"{args.case}, {args.ranks} ranks",
        "bare_ms": interval([1e3 * t for t in times["bare"]]),
        "ratio": ratio_interval(times["wrapped"], times["bare"], times["control"]),
        "control_ratio": ratio_interval(times["control"], times["bare"]),
        "jobs": 6 * args.rounds,
    }
    if rank == 0:
        table("whole jobs, wrapped against bare", [row], sys.stdout)
        if args.json:
            dump(args.json, "whole_job", [row], vars(args))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as records:
        run_on_ranks(
            worker,
            __doc__ or "",
            ranks=4,
            rounds=24,
            add=lambda parser: (
                parser.add_argument("--case", choices=CASES, default="sleeping"),
                parser.set_defaults(folder=records),
            ),
        )
