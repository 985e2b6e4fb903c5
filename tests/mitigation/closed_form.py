"""What must have been applied, in NumPy, from the programs and their data alone.

A parameter's gradient on a rank is target^T x input, summed over the batches of a step; DDP divides by the world size
W and sums. So over a whole run, whoever was late:

    sum over steps of the reduced gradient + sum over ranks of what is owed = sum over ranks, steps of gradient / W
"""

from typing import Any

import numpy as np
from programs import Array, Program, batch, normalised, steps_of, uses


def gradient(program: Program, rank: int, step: int, model: int) -> Array:
    """The gradient of a rank in a step, flat, the parameters in their order; not divided."""
    total = np.zeros(sum(int(np.prod(shape)) for shape in program.sizes))
    for micro in range(program.micro):
        total += one_backward(program, rank, step, micro, model)
    return total


def one_backward(program: Program, rank: int, step: int, micro: int, model: int) -> Array:
    parts: list[Array] = []
    across = program.forward not in ("plain", "reentrant", "not reentrant") and step % program.every == 0
    # What is summed over the ranks in the backward is the gradient of the output, the target.
    targets = [[t for _, t in batch(program, other, step, micro, model)] for other in range(program.ranks)]
    for head, (x, t) in enumerate(batch(program, rank, step, micro, model)):
        used = uses(program, rank, step, head)
        outer = sum(targets[other][head] for other in range(program.ranks)) if across else t
        parts.append((outer.T @ x).reshape(-1) * used if used else np.zeros(x.shape[1] * t.shape[1]))
        if program.heads[head][2]:
            parts.append(outer.sum(0) * used)
    if program.batch_norm:
        x, t = normalised(program, rank, step, micro)
        scaled = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
        parts.append((t.T @ scaled).reshape(-1))
    return np.concatenate(parts)


def brought(program: Program, rank: int, steps: int) -> Array:
    """The gradients of a rank, by step, as they go into the reduction: all models, divided by the world size."""
    made = [
        np.concatenate([gradient(program, rank, step, model) for model in range(program.models)])
        for step in range(min(steps, steps_of(program, rank)) if program.fewer else steps)
    ]
    if not program.effective:
        return np.stack(made) / program.ranks
    taking_part = [sum(step < steps_of(program, other) for other in range(program.ranks)) for step in range(len(made))]
    return np.stack(made) / np.array(taking_part)[:, None]


def expected(program: Program, steps: int) -> Array:
    """What all ranks brought in so many steps."""
    total: Array = sum(brought(program, rank, steps).sum(0) for rank in range(program.ranks))
    return total


def segments(program: Program) -> list[slice]:
    """Where each parameter lies in what is flat."""
    sizes = [int(np.prod(shape)) for _ in range(program.models) for shape in program.sizes]
    ends = np.cumsum(sizes)
    return [slice(int(end - size), int(end)) for size, end in zip(sizes, ends, strict=True)]


def owed(program: Program, seen: list[dict[str, Any]], name: str = "owed") -> Array:
    """What the ranks owe together, flat. A bucket is known by its size; among equal models, by its order."""
    total = np.zeros(segments(program)[-1].stop)
    for rank in seen:
        for place, residual in placed(program, rank, rank[name]):
            total[place] += residual
    return total


def placed(program: Program, rank: dict[str, Any], residuals: dict[int, Array]) -> list[tuple[slice, Array]]:
    sizes = {bucket["bucket"]: bucket["elements"] for bucket in rank["ledger"]["buckets"]} if residuals else {}
    places = []
    for bucket, residual in residuals.items():
        assert residual.shape == (sizes[bucket],)
        alike = sorted(other for other, size in sizes.items() if size == sizes[bucket])
        matching = [place for place in segments(program) if place.stop - place.start == sizes[bucket]]
        assert len(alike) == len(matching) == program.models, "a size is not that of one parameter"
        places.append((matching[alike.index(bucket)], residual))
    return places
