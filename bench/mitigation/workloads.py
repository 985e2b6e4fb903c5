"""The delay models: by how much each rank is late in each step, drawn before a run, alike for every scheme.

Pure: a model, a world, a number of steps and a seed give the delays. They are in bases; the base is what every step
sleeps. A step has three points at which a rank can be late. What a rank draws depends on its own number and the seed,
and on nothing that a scheme does; a model that chooses a rank draws that from a generator that all ranks share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Delays = NDArray[np.float64]  # of one rank: steps x POINTS, in bases

BEFORE_FORWARD, BEFORE_BACKWARD, AFTER_STEP = range(3)
POINTS = 3

MITIGATED = ("plain", "carry")
MODES = (*MITIGATED, "drop")
SCHEMES = (*MODES, "post_local", "hierarchical", "torchft")


@dataclass(frozen=True)
class World:
    """Of one run. `victim` is the rank of the models in which it is always the same one."""

    ranks: int
    steps: int
    seed: int

    @property
    def victim(self) -> int:
        return self.seed % self.ranks

    def own(self, rank: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 1, rank])

    def shared(self) -> np.random.Generator:
        return np.random.default_rng([self.seed, 0])


Model = Callable[[World, int], Delays]


@dataclass(frozen=True)
class Workload:
    """`base` is what a step sleeps without being late, in bases. `frozen_s`: so long the victim is stopped, once.
    `schemes`: those that are compared by default, the plain one first."""

    name: str
    text: str
    delays: Model
    base: float = 1.0
    steps: int = 200
    staleness: int = 32
    frozen_s: float = 0.0
    loss: bool = False
    join: bool = False
    buffers: bool = False
    schemes: tuple[str, ...] = MITIGATED


# ---- Models ----------------------------------------------------------------------------------------------------------


def never(world: World, rank: int) -> Delays:
    return np.zeros((world.steps, POINTS))


def cruise(world: World, rank: int) -> Delays:
    """With a probability of 2 %, 20 bases before backward."""
    delays = never(world, rank)
    delays[:, BEFORE_BACKWARD] = 20 * (world.own(rank).random(world.steps) < 0.02)
    return delays


def one_random(bases: int) -> Model:
    """In each step another rank, drawn for all, is late by so many bases."""

    def model(world: World, rank: int) -> Delays:
        delays = never(world, rank)
        delays[:, BEFORE_BACKWARD] = bases * (world.shared().integers(world.ranks, size=world.steps) == rank)
        return delays

    return model


# A batch takes 201 to 3,410 ms, so that the shortest is half a base; lognormal between the two, with the median where
# the two are equally far in its logarithm.
SHORTEST_MS, LONGEST_MS = 201.0, 3410.0
HALF = 0.5


def heavy_tail(world: World, rank: int) -> Delays:
    middle, half = np.log(SHORTEST_MS * LONGEST_MS) / 2, np.log(LONGEST_MS / SHORTEST_MS) / 2
    between = stats.truncnorm(-2, 2, loc=middle, scale=half / 2)  # both ends two standard deviations away
    taken = np.exp(between.rvs(world.steps, random_state=world.own(rank)))
    delays = never(world, rank)
    delays[:, BEFORE_FORWARD] = HALF * (taken / SHORTEST_MS - 1)
    return delays


def lognormal(world: World, rank: int) -> Delays:
    """DropCompute's noise: lognormal (4, 1), scaled to a mean of half a base, and cut off at 5.5 bases."""
    noise = world.own(rank).lognormal(4, 1, world.steps) / (2 * np.exp(4.5))
    delays = never(world, rank)
    delays[:, BEFORE_BACKWARD] = np.minimum(noise, 5.5)
    return delays


def victim(world: World, rank: int) -> Delays:
    """One rank, at each of three points with a probability of 15 %, by 0.5 to 2 bases."""
    if rank != world.victim:
        return never(world, rank)
    generator = world.own(rank)
    shape = (world.steps, POINTS)
    return (generator.random(shape) < 0.15) * generator.uniform(0.5, 2, shape)


def persistent(world: World, rank: int) -> Delays:
    """One rank takes twice as long in every step."""
    delays = never(world, rank)
    delays[:, BEFORE_BACKWARD] = 1.0 * (rank == world.victim)
    return delays


def duty(world: World, rank: int) -> Delays:
    """Rank 0 does something that takes ten steps, every 20 steps, after the step."""
    delays = never(world, rank)
    if rank == 0:
        delays[19::20, AFTER_STEP] = 10
    return delays


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("W1", "each rank and step: 2 % are 20 bases late", cruise, steps=400, schemes=SCHEMES),
        Workload("W2+1", "in each step one rank is late by a base", one_random(1), schemes=SCHEMES),
        Workload("W2+2", "in each step one rank is late by two bases", one_random(2), schemes=MODES),
        Workload("W3", "the time of each batch is drawn, 0.5 to 8.5 bases", heavy_tail, HALF, 120, schemes=MODES),
        Workload("W5", "lognormal noise, half a base in the mean", lognormal, schemes=MODES),
        Workload("W6", "one rank, at three points a step, 15 % are late by 0.5 to 2 bases", victim, steps=150),
        Workload("W9", "one rank is twice as slow in every step", persistent, steps=150),
        Workload("W10", "one rank is stopped for 5 s", never, steps=150, frozen_s=5),
        Workload("D6", "rank 0 takes 10 steps' time every 20 steps", duty, staleness=8),
        Workload("healthy", "nobody is late", never, schemes=("plain", "carry", "control")),
        Workload("loss", "W1, and an all_reduce of the loss in every step", cruise, steps=150, loss=True),
        Workload("join", "W1 under Join, with up to two steps fewer on some ranks", cruise, steps=150, join=True),
        Workload("buffers", "W1, and a BatchNorm, whose buffers are broadcast in every step", cruise, buffers=True),
    )
}
