"""Arrival patterns: by what share of the arrival skew each rank is late.

Shares lie between 0 and 1. Every pattern but `none` has a rank with 0 and one with 1, so the arrival skew that is
imposed is the one that was asked for. Four ranks:

| pattern | shares |
| --- | --- |
| none | 0, 0, 0, 0 |
| one_late | 0, 0, 0, 1 |
| ascending | 0, 1/3, 2/3, 1 |
| half_late | 0, 0, 1, 1 |
| random | four draws, stretched to reach from 0 to 1; others in every round, the same in every run and on every rank |

But for `random`, rank 0, the root of the broadcast, is a first arriver.
"""

from __future__ import annotations

import random
from collections.abc import Callable

SEED = 1

Shares = tuple[float, ...]


def _none(ranks: int, _generator: random.Random) -> Shares:
    return (0.0,) * ranks


def _one_late(ranks: int, _generator: random.Random) -> Shares:
    return (0.0,) * (ranks - 1) + (1.0,)


def _ascending(ranks: int, _generator: random.Random) -> Shares:
    return tuple(rank / (ranks - 1) for rank in range(ranks))


def _half_late(ranks: int, _generator: random.Random) -> Shares:
    late = ranks // 2
    return (0.0,) * (ranks - late) + (1.0,) * late


def _random(ranks: int, generator: random.Random) -> Shares:
    draws = [generator.random() for _ in range(ranks)]
    low, high = min(draws), max(draws)
    return tuple((draw - low) / (high - low) for draw in draws)


PATTERNS: dict[str, Callable[[int, random.Random], Shares]] = {
    "none": _none,
    "one_late": _one_late,
    "ascending": _ascending,
    "random": _random,
    "half_late": _half_late,
}


def delays_ns(pattern: str, ranks: int, arrival_skew_ns: int, round_number: int) -> tuple[int, ...]:
    """By how much each rank is late. A pure function, so that every rank knows it without being told."""
    generator = random.Random(f"{SEED}:{round_number}")
    return tuple(round(share * arrival_skew_ns) for share in PATTERNS[pattern](ranks, generator))
