"""What armed mitigation costs where nobody is late: its steps against those on bare gloo, in the same processes.

    .venv/bin/python bench/mitigation/healthy.py --json bench/mitigation/results/healthy.json

As many ranks as cores. Three DDP models of equal weights train on the same batches and take turns, step by step
(`common.measure`): on the default group, which is straggler_gloo with mitigation armed, on a group of bare gloo, and on
a second one of bare gloo as a control. Groups of a kind differ by themselves, in their connections; the control says by
how much. The slowest rank's time counts. Given are the mean of the middle half of the rounds' log ratios, of armed
steps to the mean of both bare ones and of the control to the bare one, each with a 95 % bootstrap interval of paired
rounds; the ratio of the sums, in which rare steps count that the middle half leaves out; messages and slots filled by
proxy, of all ranks; and after how many steps the weights are those of bare gloo to the bit. A step has a slot for each
of `--layers` and one more: rare messages take many slots to be counted.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "overhead")]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from common import Row, dump, interval, measure, ratio_interval, run_on_ranks, table  # noqa: E402
from rank import checksum  # noqa: E402
from schemes import LEARNING_RATE, MOMENTUM  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

WARM_UP = 24  # rounds, of two steps each: it is armed by step 20
FEATURES = 64
WIDTHS = {"sleeping": 64, "computing": 256}  # of the layers
BATCHES = {"sleeping": 16, "computing": 1024}  # samples a rank
BUCKET_MB = 0.01  # a layer's gradient is a bucket


class Trainer:
    def __init__(self, group: Any, case: str, layers: int, base_s: float) -> None:
        torch.manual_seed(0)
        width = WIDTHS[case]
        middle = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
        module = nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), *middle[:-1])
        self.model = DistributedDataParallel(module, process_group=group, bucket_cap_mb=BUCKET_MB)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
        self.batch = torch.randn(BATCHES[case], FEATURES, generator=torch.Generator().manual_seed(dist.get_rank()))
        self.base_s = base_s
        self.hashes: list[int] = []

    def step(self) -> float:
        """Seconds, on this rank."""
        begun = time.perf_counter()
        self.optimizer.zero_grad()
        time.sleep(self.base_s)
        self.model(self.batch).square().mean().backward()
        self.optimizer.step()
        taken = time.perf_counter() - begun
        self.hashes.append(checksum(self.model.parameters()))
        return taken


def compare(args: argparse.Namespace, case: str) -> Row:
    groups = {"bare": dist.new_group(backend="gloo"), "wrapped": None, "control": dist.new_group(backend="gloo")}
    base_s = args.base_ms / 1e3 if case == "sleeping" else 0.0
    trainers = {name: Trainer(group, case, args.layers, base_s) for name, group in groups.items()}
    times = measure(lambda name: trainers[name].step(), args.rounds, WARM_UP)
    bare, wrapped, control = (times[name] for name in ("bare", "wrapped", "control"))
    hashes = {name: trainer.hashes for name, trainer in trainers.items()}
    as_bare = sum(one == other for one, other in zip(hashes["wrapped"], hashes["bare"], strict=True))
    return {
        "case": case,
        "bare_ms": interval([1e3 * seconds for seconds in bare]),
        "ratio": ratio_interval(wrapped, bare, control),
        "control_ratio": ratio_interval(control, bare),
        "ratio_of_sums": round(2 * sum(wrapped) / (sum(bare) + sum(control)), 4),
        "steps_as_bare": f"{as_bare} of {len(hashes['wrapped'])}",
        **ledger(),
    }


def ledger() -> Row:
    """Of all ranks together, over the life of the group."""
    import torch_straggler

    own = torch_straggler.ledger()
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, own)
    slots = max(sum(bucket.produced for bucket in found.buckets) for found in every)
    return {
        "armed": all(found.armed for found in every),
        "grace_ms": ", ".join("-" if found.grace_ms is None else f"{found.grace_ms:.1f}" for found in every),
        "slots": slots,
        "filled_by_proxy": sum(found.filled_by_proxy for found in every),
        "messages": sum(found.messages for found in every),
    }


def worker(rank: int, args: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    os.environ["STRAGGLER_MITIGATE"] = args.mode
    dist.init_process_group("straggler_gloo", rank=rank, world_size=args.ranks)
    row = compare(args, args.case)
    dist.destroy_process_group()
    if rank == 0:
        table("healthy steps, armed against bare", [row], sys.stdout)
        if args.json:
            dump(args.json, "healthy", [row], vars(args))


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=("carry", "drop"), default="carry")
    parser.add_argument("--case", choices=tuple(WIDTHS), default="sleeping")
    parser.add_argument("--base-ms", type=float, default=40.0, help="what a step sleeps, where it does")
    parser.add_argument("--layers", type=int, default=5, help="beside the first one")


if __name__ == "__main__":
    run_on_ranks(worker, __doc__, ranks=os.cpu_count() or 2, rounds=1000, add=add)
