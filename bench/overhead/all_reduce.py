"""What the wrapper adds to one all_reduce: wrapped against bare, on one and the same inner gloo object.

    .venv/bin/python bench/overhead/all_reduce.py --json bench/overhead/results/all_reduce.json

Every round times, on each rank, two calls of each: bare, wrapped, and the control, which is the bare object again, so
that what the machine adds by itself stands beside what the wrapper adds. They take turns (`common.measure`). The
slowest rank's time counts, since a collective is over when its last rank is. Reported: the median over rounds of the
difference and of the ratio, with their 95 % bootstrap intervals.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from common import Row, dump, interval, measure, run_on_ranks, table

SIZES = {"4 B": 4, "4 KB": 4 << 10, "64 KB": 64 << 10, "1 MB": 1 << 20, "4 MB": 4 << 20, "25 MB": 25 << 20}


def rounds_for(size: int, rounds: int) -> int:
    """Fewer of the large sizes, which take longer and vary less."""
    return rounds if size < 1 << 20 else max(20, rounds // (10 if size < 25 << 20 else 40))


def call(backends: dict[str, Any], tensor: torch.Tensor, asynchronous: bool, name: str) -> float:
    """Seconds, on this rank."""
    options = dist.AllreduceOptions()
    options.asyncOp = asynchronous
    begin = time.perf_counter()
    backends[name].allreduce([tensor], options).wait()
    return time.perf_counter() - begin


def same_bits(backends: dict[str, Any], rank: int, size: int) -> bool:
    generator = torch.Generator().manual_seed(rank)
    data = torch.randn(size // 4, generator=generator)
    results = []
    for name in ("bare", "wrapped"):
        tensor = data.clone()
        backends[name].allreduce([tensor], dist.AllreduceOptions()).wait()
        results.append(tensor)
    return torch.equal(results[0], results[1])


def worker(rank: int, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("straggler_gloo", rank=rank, world_size=args.ranks)
    wrapped = dist.group.WORLD._get_backend(torch.device("cpu"))
    backends = {"wrapped": wrapped, "bare": wrapped.inner, "control": wrapped.inner}
    rows: list[Row] = []
    for label, size in SIZES.items():
        equal = same_bits(backends, rank, size)
        for asynchronous in (False, True):
            tensor = torch.zeros(size // 4)
            timed = partial(call, backends, tensor, asynchronous)
            times = measure(timed, rounds_for(size, args.rounds))
            if rank == 0:
                rows.append(row(f"{label} {'async' if asynchronous else 'sync'}", times, equal))
    dist.destroy_process_group()
    if rank == 0:
        table("all_reduce, wrapped against bare", rows, sys.stdout)
        if args.json:
            dump(args.json, "all_reduce", rows, vars(args))


def row(label: str, times: dict[str, list[float]], equal: bool) -> Row:
    def differences(name: str, combine: Callable[[float, float], float]) -> list[float]:
        return [combine(a, b) for a, b in zip(times[name], times["bare"], strict=True)]

    return {
        "case": label,
        "bare_us": interval([1e6 * t for t in times["bare"]]),
        "added_us": interval([1e6 * d for d in differences("wrapped", lambda a, b: a - b)]),
        "control_added_us": interval([1e6 * d for d in differences("control", lambda a, b: a - b)]),
        "ratio": interval(differences("wrapped", lambda a, b: a / b)),
        "control_ratio": interval(differences("control", lambda a, b: a / b)),
        "results_equal": equal,
    }


if __name__ == "__main__":
    run_on_ranks(worker, __doc__, ranks=4, rounds=2000)
