"""What the overhead benches share: intervals, the table, the file of results."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table
from scipy import stats
from torch.multiprocessing import spawn

# A case's name, its figures as [median, low, high], and flags.
Row = dict[str, Any]


def interval(values: list[float]) -> list[float]:
    """Median and its 95 % bootstrap interval (percentile method, 2,000 resamples, fixed seed)."""
    data = (np.asarray(values),)
    result = stats.bootstrap(data, np.median, n_resamples=2000, method="percentile", rng=np.random.default_rng(0))
    return [float(np.median(values)), float(result.confidence_interval.low), float(result.confidence_interval.high)]


def ratio_interval(above: list[float], *below: list[float]) -> list[float]:
    """Ratio of paired times and its 95 % bootstrap interval: one value a round, all of the same rounds.

    The logarithm of `above` over the geometric mean of `below`, of each round; of these the mean of the middle half,
    which moves with outliers as little as a median does, and 15 to 20 % less with everything else.
    """
    logs = np.log(above) - np.mean([np.log(times) for times in below], axis=0)

    def middle(values: np.ndarray, axis: int = -1) -> np.ndarray:
        return stats.trim_mean(values, 0.25, axis=axis)

    result = stats.bootstrap(
        (logs,), middle, n_resamples=2000, batch=100, method="percentile", rng=np.random.default_rng(0)
    )
    bounds = result.confidence_interval
    return [float(np.exp(value)) for value in (middle(logs), bounds.low, bounds.high)]


NAMES = ("bare", "wrapped", "control")  # the control is the bare one again


def measure(timed: Callable[[str], float], rounds: int, warm_up: int = 6) -> dict[str, list[float]]:
    """Seconds of the slowest rank, by name, one value a round; `timed(name)` gives those of this rank.

    A round is two turns of all three. Each round begins with another one, and none comes twice in a row: so a drift of
    the machine, and what the one before leaves in the caches, fall on all alike.
    """
    seconds = torch.zeros(rounds, len(NAMES), dtype=torch.float64)
    for round_ in range(-warm_up, rounds):
        for turn in range(2 * len(NAMES)):
            place = (round_ + turn) % len(NAMES)
            taken = timed(NAMES[place])
            if round_ >= 0:
                seconds[round_, place] += taken / 2
    # Of each round the slowest rank counts: a collective is over when its last rank is.
    if dist.is_initialized():
        dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return {name: seconds[:, place].tolist() for place, name in enumerate(NAMES)}


def shown(value: Any) -> str:
    if isinstance(value, list):
        digits = 4 if abs(value[0]) < 10 else 1
        return f"{value[0]:.{digits}f} [{value[1]:.{digits}f}, {value[2]:.{digits}f}]"
    return str(value)


def table(title: str, rows: list[Row], out: TextIO) -> None:
    view = Table(title=f"{title}: median [95 % interval]")
    for name in rows[0]:
        view.add_column(name, justify="left" if name == "case" else "right")
    for row in rows:
        view.add_row(*(shown(value) for value in row.values()))
    Console(file=out, width=160).print(view)


def dump(path: str, bench: str, rows: list[Row], options: dict[str, Any]) -> None:
    """Writes the results with what is needed to read them."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    document = {
        "bench": bench,
        "command": " ".join(sys.argv),
        "date": date.today().isoformat(),
        "host": {"machine": platform.machine(), "cores": os.cpu_count(), "system": platform.platform()},
        "torch": torch.__version__,
        "python": platform.python_version(),
        "options": options,
        "rows": rows,
    }
    Path(path).write_text(json.dumps(document, indent=2) + "\n")


def run_on_ranks(
    worker: Callable[[int, argparse.Namespace], None],
    text: str,
    ranks: int,
    rounds: int,
    add: Callable[[argparse.ArgumentParser], object] = lambda parser: None,
) -> None:
    """Parses the command line, to which `add` adds, and runs `worker(rank, options)` in a process for each rank."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=ranks)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--json", default=None, help="where the results go")
    add(parser)
    options = parser.parse_args()
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29611")
    spawn(worker, args=(options,), nprocs=options.ranks)
