"""straggler_nccl on a machine with GPUs: on one of them, then on all.

    python tests/gpu/check_nccl.py

Prints what it checked, a line each; exit status 1 if something does not hold. Without a GPU it says so and ends with 0.
No pytest: it is run by hand, where there is a GPU, against the installed package.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

STEPS = 20
FAILED = 3  # exit status of a rank on which a check failed


class Checks:
    """What was checked on one rank. Rank 0 prints all of it, the others what does not hold."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.failed = False

    def check(self, name: str, holds: bool, seen: object = "") -> None:
        self.failed |= not holds
        if self.rank == 0 or not holds:
            print(
                f"{'ok  ' if holds else 'FAIL'} rank {self.rank}: {name}{f' ({seen})' if seen != '' else ''}",
                flush=True,
            )


def work(rank: int, world: int, folder: str) -> None:
    """One rank: collectives against their known results, a few DDP steps, barrier, destroy, the records."""
    os.environ["STRAGGLER_DIR"] = folder
    checks = Checks(rank)
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    store = dist.FileStore(f"{folder}/meeting", world)
    dist.init_process_group(
        "cuda:straggler_nccl", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=60), device_id=device
    )
    backend = dist.group.WORLD._get_backend(device)
    checks.check("the group is wrapped", type(backend).__name__ == "StragglerBackend", type(backend.inner).__name__)
    collectives(checks, device, world)
    train(checks, device)
    dist.barrier()
    dist.barrier(device_ids=[rank])
    torch.cuda.synchronize()
    checks.check("barriers pass", True)
    dist.destroy_process_group()
    checks.check("destroy returns", not dist.is_initialized())
    records(checks, Path(folder), rank)
    sys.stdout.flush()
    if checks.failed:
        raise SystemExit(FAILED)


def collectives(checks: Checks, device: torch.device, world: int) -> None:
    total = world * (world + 1) / 2
    rank = dist.get_rank()
    mine = torch.full((1 << 16,), rank + 1.0, device=device)
    dist.all_reduce(mine)
    checks.check("all_reduce, synchronous", bool((mine == total).all()))
    mine.fill_(rank + 1.0)
    handle = dist.all_reduce(mine, async_op=True)
    handle.wait()
    checks.check("all_reduce, asynchronous", bool((mine == total).all()))
    checks.check("its Work is completed", _soon(handle.is_completed))
    gathered = torch.zeros(world * 4, device=device)
    dist.all_gather_into_tensor(gathered, torch.full((4,), float(rank), device=device))
    checks.check("all_gather_into_tensor", gathered.tolist() == [float(r) for r in range(world) for _ in range(4)])
    part = torch.zeros(4, device=device)
    dist.reduce_scatter_tensor(part, torch.ones(4 * world, device=device))
    checks.check("reduce_scatter_tensor", part.tolist() == [float(world)] * 4)
    sent = torch.full((3,), float(rank) if rank == 0 else -1.0, device=device)
    dist.broadcast(sent, 0)
    checks.check("broadcast", sent.tolist() == [0.0] * 3)
    objects: list[Any] = [None] * world
    dist.all_gather_object(objects, {"rank": rank})
    checks.check("all_gather_object", objects == [{"rank": r} for r in range(world)])


def train(checks: Checks, device: torch.device) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(device)
    model = torch.nn.parallel.DistributedDataParallel(plain, device_ids=[device.index])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(32, 256, device=device)).square().mean().backward()
        optimizer.step()
    parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
    largest, smallest = parameters.clone(), parameters.clone()
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    dist.all_reduce(smallest, dist.ReduceOp.MIN)
    checks.check(f"{STEPS} DDP steps: parameters are equal on all ranks", bool((largest == smallest).all()))


def records(checks: Checks, folder: Path, rank: int) -> None:
    lines = [json.loads(line) for line in (folder / f"rank-{rank:05}.jsonl").read_text().splitlines()]
    operations = [line for line in lines if not line["is_p2p"]]
    numbers = [line["collective_seq_id"] for line in operations]
    checks.check("every collective is recorded once, in order", numbers == list(range(len(numbers))), len(numbers))
    arrivals = {line["arrival_from"] for line in operations if line["kind"] != "barrier"}
    checks.check("arrivals are the device's", arrivals == {"device_event"}, sorted(arrivals))
    backward = [line for line in operations if line["graph_task"] is not None]
    checks.check("operations of the backward are released by its end",
                 {line["released_from"] for line in backward} == {"graph_task"}, len(backward))  # fmt: skip
    known = [line for line in operations if line["completed_ns"] is not None]
    checks.check("completions are known", len(known) == len(operations), f"{len(known)} of {len(operations)}")
    checks.check("nothing completes before it arrives", all(o["completed_ns"] >= o["arrival_ns"] for o in known))
    if rank == 0:
        reports = [json.loads(line) for line in (folder / "job.jsonl").read_text().splitlines() if '"report"' in line]
        checks.check("the report has every rank", reports[-1]["ranks_reported"] == reports[-1]["world_size"])
        checks.check(
            "steps are found by the backward", reports[-1]["steps_found_by"] == "graph_task", reports[-1]["steps"]
        )
        checks.check("no record was dropped", reports[-1]["records_dropped"] == 0)


def _soon(question: Any) -> bool:
    torch.cuda.synchronize()
    return bool(question())


def main() -> int:
    if not torch.cuda.is_available() or not dist.is_nccl_available():
        print("no GPU that torch can use with NCCL here: nothing was checked")
        return 0
    status = 0
    for world in sorted({1, torch.cuda.device_count()}):
        print(f"---- {world} of {torch.cuda.device_count()} GPUs, torch {torch.__version__}")
        with tempfile.TemporaryDirectory() as folder:
            try:
                torch.multiprocessing.spawn(work, (world, folder), nprocs=world)
            except torch.multiprocessing.ProcessRaisedException as error:
                print(error)
                status = 1
            except torch.multiprocessing.ProcessExitedException as error:
                print(f"FAIL: {error}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
