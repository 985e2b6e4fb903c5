"""The oracle: a run of floats, done again from its participation log by gloo alone, in one process.

As many process groups of gloo as the run had ranks, each on a thread, meet over a HashStore. Gradients are computed
anew from the parameters of each step, put together as the log says, and reduced. Every result must have the bits of
the run.

    python oracle.py PROGRAM FOLDER
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from closed_form import segments
from participation import Contribution, Participation
from program_table import BY_NAME
from programs import Array, Heads, Program, loss_of, optimizer_of, read


class Gloo:
    """All ranks of a group, on threads of this process."""

    def __init__(self, ranks: int) -> None:
        store = dist.HashStore()
        self.threads = ThreadPoolExecutor(ranks)
        timeout = timedelta(seconds=30)
        made = [self.threads.submit(dist.ProcessGroupGloo, store, rank, ranks, timeout) for rank in range(ranks)]
        self.groups = [each.result() for each in made]

    def reduce(self, contributions: list[torch.Tensor]) -> torch.Tensor:
        def one(group: dist.ProcessGroupGloo, tensor: torch.Tensor) -> torch.Tensor:
            group.allreduce([tensor]).wait()
            return tensor

        results = list(self.threads.map(one, self.groups, contributions))
        assert all(torch.equal(result, results[0]) for result in results)
        return results[0]


def gradient(program: Program, modules: list[Heads], rank: int, step: int) -> torch.Tensor:
    """What DDP would reduce: the gradients of all models, flat, times 1 / W."""
    parameters = [p for module in modules for p in module.parameters()]
    for parameter in parameters:
        parameter.grad = None
    for model, module in enumerate(modules):
        loss_of(program, module, rank, step, 0, model, 0).backward()
    flat = torch.cat([p.grad.reshape(-1) for p in parameters if p.grad is not None])
    return flat * (1.0 / program.ranks)


def contribution(brought: Contribution, made: list[torch.Tensor], step: int, place: slice) -> torch.Tensor:
    """In the order of the additions: what is owed grows step by step, and is then added to what the slot brings."""
    own = made[step][place].clone() if brought.own else torch.zeros(place.stop - place.start)
    if not brought.earlier:
        return own
    owed = made[brought.earlier[0]][place].clone()
    for earlier in brought.earlier[1:]:
        owed += made[earlier][place]
    return own + owed


def loss(program: Program, modules: list[Heads]) -> float:
    """Over the batches of the first 50 steps, of all ranks."""
    with torch.no_grad():
        losses = [
            loss_of(program, module, rank, step, 0, model, 0)
            for model, module in enumerate(modules)
            for rank in range(program.ranks)
            for step in range(50)
        ]
    return float(torch.stack(losses).mean())


def synchronous(program: Program, steps: int) -> tuple[float, float]:
    """The loss before and after training in which nobody is ever late."""
    modules = [Heads(program, model) for model in range(program.models)]
    parameters = [p for module in modules for p in module.parameters()]
    optimizer, before = optimizer_of(program, parameters), loss(program, modules)
    for step in range(steps):
        total = torch.stack([gradient(program, modules, rank, step) for rank in range(program.ranks)]).sum(0)
        for parameter, place in zip(parameters, segments(program), strict=True):
            parameter.grad = total[place].view_as(parameter)
        optimizer.step()
    return before, loss(program, modules)


def replay(program: Program, folder: Path) -> dict[str, int | bool | float]:
    seen: Array = read(folder, program, 0)["reduced"]
    log = Participation(program, folder / program.name)
    said = {b: dict(log.contributions(b)) for b in log.buckets()}
    bucket_at = {place.start: bucket for bucket, place in log.buckets().items()}
    gloo = Gloo(program.ranks)
    modules = [Heads(program, model) for model in range(program.models)]
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = optimizer_of(program, parameters)
    made: list[list[torch.Tensor]] = [[] for _ in range(program.ranks)]
    equal = results = partial = 0
    for step in range(len(seen)):
        for rank in range(program.ranks):
            made[rank].append(gradient(program, modules, rank, step))
        if step == 0:  # DDP's first buckets: one for each model
            half = made[0][0].numel() // program.models
            places = [slice(half * model, half * (model + 1)) for model in range(program.models)]
            firsts = torch.cat([gloo.reduce([m[0][place].clone() for m in made]) for place in places])
        for parameter, place in zip(parameters, segments(program), strict=True):
            bucket = bucket_at.get(place.start)
            everyone = [Contribution(True, ())] * program.ranks
            brought = everyone if bucket is None or step == 0 else said[bucket][step]
            partial += any(not each.own for each in brought)
            if step == 0:
                result = firsts[place]
            else:
                result = gloo.reduce([contribution(b, made[r], step, place) for r, b in enumerate(brought)])
            results += 1
            equal += result.numpy().tobytes() == seen[step][place].tobytes()
            parameter.grad = result.view_as(parameter)
        optimizer.step()
    end = torch.cat([p.detach().reshape(-1) for p in parameters]).numpy().astype(np.float64)
    same = bool(np.array_equal(end, read(folder, program, 0)["end_after_flush"]))
    counts = {"equal": equal, "results": results, "partial": partial, "parameters": same}
    before, after = synchronous(program, len(seen))
    return counts | {"loss": loss(program, modules), "synchronous": after, "at the start": before}


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(replay(BY_NAME[sys.argv[1]], Path(sys.argv[2]))))
