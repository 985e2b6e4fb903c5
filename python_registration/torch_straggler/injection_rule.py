"""Which rank is delayed, where, when and for how long: the rules of `--inject`, as plain values.

A rule is written `rank=2,where=backward,ms=8`; several are separated by `;`. Everything here is pure: parsing is a
function of the text, and whether a rank is delayed is a function of (rule, rank, world size, step).

| field | value | default | meaning |
| --- | --- | --- | --- |
| `rank` | number, `random`, `all` | required; 0 with `rotate`, all with `control` | global rank; `random`: each step |
| `where` | `input`, `forward`, `backward`, `collective`, `control` | required | see `inject.py` |
| `ms` | number above 0, at most 3600000 | required | length of the delay, milliseconds |
| `probability` | 0 to 1 | 1 | chance that a delay that is due happens; each rank draws for itself |
| `rotate` | `true`, `false` | `false` | the rank moves on by one each time, starting at `rank` |
| `every` | 1 or more | 1 | only every n-th step, counted from `from` |
| `from`, `to` | step numbers | 8, no end | first and last step, both included; the first 8 steps are warm-up |
| `spin` | `true`, `false` | `false` | burn CPU time instead of sleeping |
| `seed` | whole number | 0 | of the draws for `random` and `probability` |

Ranks are below 2^31, whole numbers below 2^63: what the C++ side can read.

`random` draws the same rank on every rank. For `where=collective` a step is one operation of one group, counted from 0
in each group, and the delays are made in C++: there `rank` is a number or `all`, without `rotate` or `spin`.

`where=control` is about mitigation's control messages of all ranks: each is, with the given probability, lost, repeated
or late by `ms`, a third each. It takes `ms`, `probability` and `seed` alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

PLACES = ("input", "forward", "backward", "collective", "control")
WARM_UP_STEPS = 8
LONGEST_MS = 3_600_000

ALL = -1
RANDOM = -2

_T = TypeVar("_T")


class RuleError(ValueError):
    """A rule that cannot be understood. The text names the field and what is allowed."""


@dataclass(frozen=True)
class Rule:
    """One rule. `rank` is a global rank, `ALL` or `RANDOM`; `last` is None for no end; steps count from 0."""

    rank: int
    where: str
    ms: float
    probability: float = 1.0
    rotate: bool = False
    every: int = 1
    first: int = WARM_UP_STEPS
    last: int | None = None
    spin: bool = False
    seed: int = 0


# ---- Decision --------------------------------------------------------------------------------------------------------


def due(rule: Rule, step: int) -> bool:
    """Whether the rule delays some rank in this step, chance aside."""
    ended = rule.last is not None and step > rule.last
    return step >= rule.first and not ended and (step - rule.first) % rule.every == 0


def target(rule: Rule, world: int, step: int) -> int:
    """The global rank that the rule is about in a step in which it is due, or `ALL`. The same on every rank."""
    if rule.rank == RANDOM:
        return random.Random(f"rank {rule.where} {rule.ms} {rule.seed} {step}").randrange(world)
    if rule.rotate:
        return (rule.rank + (step - rule.first) // rule.every) % world
    return rule.rank


def delays(rule: Rule, rank: int, world: int, step: int) -> bool:
    """Whether the rule delays `rank`, of `world` ranks, in this step."""
    if not due(rule, step) or target(rule, world, step) not in (ALL, rank):
        return False
    if rule.probability == 1.0:
        return True
    chance = random.Random(f"chance {rule.where} {rule.ms} {rule.seed} {rank} {step}").random()
    return chance < rule.probability


# ---- Text ------------------------------------------------------------------------------------------------------------


def parse(text: str) -> tuple[Rule, ...]:
    """Reads rules separated by `;`.

    Raises:
        RuleError: no rule, or a field that is unknown, missing, given twice or malformed.
    """
    rules = tuple(_parse_rule(part.strip()) for part in text.split(";") if part.strip())
    if not rules:
        raise RuleError("no rule in it; a rule is written rank=2,where=backward,ms=8")
    return rules


def collective_text(rules: tuple[Rule, ...]) -> str:
    """The rules for `where=collective` as the C++ side reads them: one a line, every field present, in this order.

    `rank=<n, -1 for all> ms=<number> probability=<number> from=<n> to=<n, -1 for no end> every=<n> seed=<n>`
    """
    return "\n".join(
        f"rank={rule.rank} ms={rule.ms!r} probability={rule.probability!r} from={rule.first} "
        f"to={-1 if rule.last is None else rule.last} every={rule.every} seed={rule.seed}"
        for rule in rules
        if rule.where == "collective"
    )


def _parse_rule(text: str) -> Rule:
    fields = _Fields(text)
    rotate = fields.take("rotate", _boolean, "true, false", False)
    everybody = ALL if fields.says("where", "control") else None
    rule = Rule(
        rank=fields.take("rank", _rank, "a rank number, random, all", 0 if rotate else everybody),
        where=fields.take("where", _place, ", ".join(PLACES)),
        ms=fields.take("ms", _milliseconds, f"a number of milliseconds above 0, at most {LONGEST_MS}"),
        probability=fields.take("probability", _probability, "a number from 0 to 1", 1.0),
        rotate=rotate,
        every=fields.take("every", _positive, "a whole number, 1 or more", 1),
        first=fields.take("from", _natural, "a step number, 0 or more", WARM_UP_STEPS),
        last=fields.take_optional("to", _natural, "a step number, 0 or more"),
        spin=fields.take("spin", _boolean, "true, false", False),
        seed=fields.take("seed", _natural, "a whole number, 0 or more", 0),
    )
    fields.refuse_unknown()
    _check_combination(rule, text)
    return rule


def _check_combination(rule: Rule, text: str) -> None:
    if rule.rotate and rule.rank in (ALL, RANDOM):
        raise RuleError(f"'{text}': rotate starts at a rank number; allowed: rank=<number>,rotate=true")
    if rule.last is not None and rule.last < rule.first:
        raise RuleError(f"'{text}': to={rule.last} comes before from={rule.first}; allowed: to at or after from")
    if rule.where == "control" and rule != Rule(ALL, "control", rule.ms, probability=rule.probability, seed=rule.seed):
        raise RuleError(f"'{text}': where=control is about all ranks; allowed: ms, probability and seed")
    if rule.where == "collective":
        if rule.rank == RANDOM or rule.rotate:
            raise RuleError(
                f"'{text}': where=collective counts operations, which are no steps, so it cannot draw or rotate the "
                "rank; allowed: rank=<number>, rank=all"
            )
        if rule.spin:
            raise RuleError(f"'{text}': where=collective cannot spin; allowed: spin=false")


class _Fields:
    """The `name=value` fields of one rule, each to be taken once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: list[str] = []
        self._values: dict[str, str] = {}
        for part in text.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals:
                raise RuleError(f"'{text}': '{part.strip()}' is not a field; a field is written name=value")
            if name in self._values:
                raise RuleError(f"'{text}': {name} is given twice")
            self._values[name] = value

    def says(self, name: str, value: str) -> bool:
        return self._values.get(name) == value

    def take(self, name: str, read: Callable[[str], _T], allowed: str, default: _T | None = None) -> _T:
        value = self.take_optional(name, read, allowed)
        if value is None:
            value = default
        if value is None:
            raise RuleError(f"'{self._text}': {name} is missing; allowed: {allowed}")
        return value

    def take_optional(self, name: str, read: Callable[[str], _T], allowed: str) -> _T | None:
        self._known.append(name)
        if name not in self._values:
            return None
        text = self._values[name]
        try:
            return read(text)
        except ValueError:
            raise RuleError(f"'{self._text}': {name}={text} is not valid; allowed: {allowed}") from None

    def refuse_unknown(self) -> None:
        for name in self._values:
            if name not in self._known:
                raise RuleError(f"'{self._text}': unknown field {name}; the fields are {', '.join(self._known)}")


# ---- Values: each raises ValueError ----------------------------------------------------------------------------------


def _rank(text: str) -> int:
    return {"all": ALL, "random": RANDOM}[text] if text in ("all", "random") else _natural(text, 2**31)


def _place(text: str) -> str:
    if text not in PLACES:
        raise ValueError
    return text


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError
    return text == "true"


def _natural(text: str, end: int = 2**63) -> int:
    if not text.isdecimal() or int(text) >= end:
        raise ValueError
    return int(text)


def _positive(text: str) -> int:
    value = _natural(text)
    if value < 1:
        raise ValueError
    return value


def _milliseconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= LONGEST_MS:
        raise ValueError
    return value


def _probability(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError
    return value
