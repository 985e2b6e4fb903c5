"""What is measured: the options of the command line, checked, and expanded into families, cells and rounds.

A family is a bare backend with the wrapped one beside it. Its subjects are groups of the same ranks:

    bare      a group on the bare backend
    control   a second one, on the same backend: what two equal groups differ by
    wrapped   a group on the wrapped backend

A cell is one combination of collective, bytes, pattern and arrival skew. It is measured in rounds, and a round runs
every subject twice, forwards and backwards, so that a drift of the machine meets all of them alike. Three subjects:

    round 0    bare control wrapped wrapped control bare
    round 1    control wrapped bare bare wrapped control
    …
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

WRAPPED = {"gloo": "straggler_gloo", "nccl": "straggler_nccl"}
ROLES = ("bare", "control", "wrapped")


@dataclass(frozen=True)
class Subject:
    """One group that is measured; `role` is one of ROLES."""

    backend: str
    role: str


@dataclass(frozen=True)
class Family:
    bare: str
    wrapped: str | None

    @property
    def subjects(self) -> tuple[Subject, ...]:
        pair = (Subject(self.bare, "bare"), Subject(self.bare, "control"))
        return pair if self.wrapped is None else (*pair, Subject(self.wrapped, "wrapped"))


@dataclass(frozen=True)
class Cell:
    """`bytes` is what was asked for; `skew` is the arrival skew in transfer times of this collective and size."""

    family: Family
    collective: str
    bytes: int
    pattern: str
    skew: float


@dataclass(frozen=True)
class Plan:
    """Everything the ranks need to know.

    Attributes:
        sizes: bytes.
        skews: arrival skews, in transfer times; 0 goes with the pattern `none`, and only with it.
        rounds: of two measurements a subject.
        time_limit_s: after which the ranks are ended.
    """

    ranks: int
    families: tuple[Family, ...]
    collectives: tuple[str, ...]
    sizes: tuple[int, ...]
    patterns: tuple[str, ...]
    skews: tuple[float, ...]
    rounds: int
    time_limit_s: float

    def shapes(self) -> list[tuple[str, float]]:
        """Pairs of pattern and arrival skew. `none` comes first, whatever its place in the list."""
        none = [("none", 0.0)] if "none" in self.patterns else []
        late = [name for name in self.patterns if name != "none"]
        return none + [(pattern, skew) for pattern in late for skew in self.skews if skew > 0]

    def blocks(self) -> list[tuple[Family, str, int]]:
        """Family, collective and bytes: what has one transfer time."""
        return [(family, name, size) for family in self.families for name in self.collectives for size in self.sizes]

    def cells(self, family: Family, collective: str, size: int) -> Iterator[Cell]:
        for pattern, skew in self.shapes():
            yield Cell(family, collective, size, pattern, skew)


def families(backends: tuple[str, ...]) -> tuple[Family, ...]:
    """Pairs the names up. A wrapped backend brings its bare one with it, as it is compared with that."""
    return tuple(
        Family(bare, wrapped if wrapped in backends else None)
        for bare, wrapped in WRAPPED.items()
        if bare in backends or wrapped in backends
    )


def order(subjects: tuple[Subject, ...], round_number: int) -> tuple[Subject, ...]:
    """The order of one round: every subject twice, as a palindrome, beginning with another one each time."""
    turn = round_number % len(subjects)
    forwards = subjects[turn:] + subjects[:turn]
    return forwards + forwards[::-1]
