"""Rules of other tools, written anew from what is published of them, over what their users would give them. Pure.

A rule takes what was seen of a session and a multiplier of its threshold (1: as published; more: less sensitive) and
tells whom it names, in which step. The tools report now and then, on the steps since the last report; a report stands
for itself. Sources and what each sees: README.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from seen import Seen

WARM_UP = 10  # steps that no rule looks at
REPORT_STEPS = 50  # between two reports of a tool that reports now and then
SHORT_STEPS = 10  # the window of the rules of thumb, as ours
HAZARD = 1 / 250  # of a change, a step
LONGEST_RUN = 300  # steps of a run that are told apart
SETTLE_STEPS = 10  # after a change, before it is compared with what was before


@dataclass(frozen=True)
class Naming:
    step: int  # the last step that was looked at
    rank: int


Rule = Callable[[Seen, float], Iterator[Naming]]


def _windows(seen: Seen, length: int) -> Iterator[tuple[slice, int]]:
    for begin in range(WARM_UP, seen.steps - length + 1, length):
        yield slice(begin, begin + length), begin + length - 1


# ---- Timers ----------------------------------------------------------------------------------------------------------


def nvrx(seen: Seen, multiplier: float) -> Iterator[Naming]:
    """NVRx: a section's relative score is the fastest rank's median time over the rank's; below 0.75 it is a straggler.
    The sections are those of its guide: the fetch of a batch, and forward.

    Forward 20, 20 and 28 ms: scores 1, 1 and 0.71: the third rank is named.
    """
    limit = 0.75**multiplier
    for window, last in _windows(seen, REPORT_STEPS):
        for section in ("input", "forward"):
            median = np.median(seen.phase(section)[:, window], axis=1)
            yield from (Naming(last, int(rank)) for rank in np.nonzero(median.min() / median < limit)[0])


def mean_multiple(seen: Seen, multiplier: float) -> Iterator[Naming]:
    """A rank whose mean step takes more than 2.0 times the mean over the ranks."""
    for window, last in _windows(seen, SHORT_STEPS):
        own = seen.step_ms[:, window].mean(axis=1)
        yield from (Naming(last, int(rank)) for rank in np.nonzero(own > 2.0 * multiplier * own.mean())[0])


def median_mad(seen: Seen, multiplier: float) -> Iterator[Naming]:
    """A rank whose mean step is above the ranks' median by more than three times their scaled median deviation."""
    for window, last in _windows(seen, SHORT_STEPS):
        own = seen.step_ms[:, window].mean(axis=1)
        middle = np.median(own)
        limit = middle + 3 * multiplier * stats.median_abs_deviation(own, scale="normal")
        yield from (Naming(last, int(rank)) for rank in np.nonzero(own > limit)[0])


def relative(seen: Seen, multiplier: float) -> Iterator[Naming]:
    """A rank one of whose phases takes 1.2 times the ranks' median of that phase, or 5 ms more."""
    for window, last in _windows(seen, REPORT_STEPS):
        phases = seen.phases[:, window].mean(axis=1)  # ranks x phases
        middle = np.median(phases, axis=0)
        above = (phases > middle * (1 + 0.2 * multiplier)) | (phases > middle + 5 * multiplier)
        yield from (Naming(last, int(rank)) for rank in np.nonzero(above.any(axis=1))[0])


def traceml(seen: Seen, multiplier: float, sharded: bool = False) -> Iterator[Naming]:
    """traceml's rank-straggler policy: the culprit is the rank that waits least in the phase that synchronises
    (backward; forward and backward where parameters are sharded), the victim the upper median by it, and the rank is
    named if the difference is 10 % of the victim's input and step.

    Backwards of 16, 22, 22 and 22 ms in steps of 40: the first rank's is 6 ms less, 15 %: it is named.
    """
    for window, last in _windows(seen, REPORT_STEPS):
        phases = {name: seen.phase(name)[:, window].mean(axis=1) for name in ("forward", "backward")}
        visible = phases["backward"] + (phases["forward"] if sharded else 0)
        whole = seen.step_ms[:, window].mean(axis=1)
        order = np.argsort(visible, kind="stable")
        culprit, victim = int(order[0]), int(order[len(order) // 2])
        if (visible[victim] - visible[culprit]) / whole[victim] >= 0.10 * multiplier:
            yield Naming(last, culprit)


# ---- Collective starts -----------------------------------------------------------------------------------------------


def last_shares(seen: Seen, window: slice) -> NDArray[np.float64] | None:
    """Of the collectives of these steps that a rank takes part in, at how many it was the last to start."""
    inside = (seen.step_of >= window.start) & (seen.step_of < window.stop)
    lateness = seen.lateness[inside]
    if not len(lateness):
        return None
    was_last = lateness == np.nanmax(lateness, axis=1, keepdims=True)
    taken = np.maximum(1, (~np.isnan(lateness)).sum(axis=0))
    shares: NDArray[np.float64] = was_last.sum(axis=0) / taken
    return shares


def last_start(seen: Seen, multiplier: float) -> Iterator[Naming]:
    """TraceLens tells of each collective which rank started it last, and by how much: a reader names the rank that
    starts last in more than half of them."""
    for window, last in _windows(seen, REPORT_STEPS):
        shares = last_shares(seen, window)
        if shares is not None and shares.max() > 0.5 ** (1 / multiplier):
            yield Naming(last, int(shares.argmax()))


# ---- Change points ---------------------------------------------------------------------------------------------------


def run_lengths(values: NDArray[np.float64], hazard: float = HAZARD) -> NDArray[np.int64]:
    """The most probable number of values since the last change, after each value: Bayesian online change point
    detection (Adams and MacKay, arXiv 0710.3742) for a normal of unknown mean and variance. The prior's mean and
    variance are those of the first ten values, which are part of no change."""
    head = values[:10]
    mean0, kappa0, alpha0, beta0 = float(np.median(head)), 1.0, 1.0, max(float(np.var(head)), 1e-6)
    mean, kappa, alpha, beta = (np.array([value]) for value in (mean0, kappa0, alpha0, beta0))
    probability, lengths = np.ones(1), np.empty(len(values), dtype=np.int64)
    for place, value in enumerate(values):
        scale = np.sqrt(beta * (kappa + 1) / (alpha * kappa))
        likelihood = probability * stats.t.pdf(value, 2 * alpha, loc=mean, scale=scale)
        probability = np.concatenate(([likelihood.sum() * hazard], likelihood * (1 - hazard)))
        probability /= probability.sum()
        beta = np.concatenate(([beta0], beta + kappa * (value - mean) ** 2 / (2 * (kappa + 1))))
        mean = np.concatenate(([mean0], (kappa * mean + value) / (kappa + 1)))
        kappa, alpha = np.concatenate(([kappa0], kappa + 1)), np.concatenate(([alpha0], alpha + 0.5))
        if len(probability) > LONGEST_RUN:
            kept = slice(0, LONGEST_RUN)
            probability, mean, kappa, alpha, beta = (of[kept] for of in (probability, mean, kappa, alpha, beta))
        lengths[place] = int(probability.argmax())
    return lengths


def changes(values: NDArray[np.float64]) -> tuple[tuple[int, int], ...]:
    """Where the values change, and where that was seen: the most probable run has become shorter by more than ten."""
    return _changes(values.tobytes())


@functools.lru_cache(maxsize=4)  # every threshold of a rule asks for the same ones
def _changes(values: bytes) -> tuple[tuple[int, int], ...]:
    lengths = run_lengths(np.frombuffer(values))
    shorter = (np.diff(lengths) < -10) & (lengths[1:] < LONGEST_RUN - 10)
    return tuple((int(place - lengths[place]) + 1, int(place)) for place in np.nonzero(shorter)[0] + 1)


def _named_at_changes(seen: Seen, least_rise: float) -> Iterator[Naming]:
    """At a change for the worse of the job's step, by at least that share, the rank that then starts last most often:
    all ranks' steps are equally long, so that the change alone tells no rank."""
    step = seen.step_ms[:, WARM_UP:].max(axis=0)
    for begin, noticed in changes(step):
        until = max(noticed, begin + SETTLE_STEPS - 1)
        if until >= len(step):
            continue
        before, after = step[max(0, begin - 50) : begin], step[begin : until + 1]
        shares = last_shares(seen, slice(WARM_UP + begin, WARM_UP + until + 1))
        if shares is not None and len(before) and after.mean() > before.mean() * (1 + least_rise):
            yield Naming(WARM_UP + until, int(shares.argmax()))


def change_point(seen: Seen, multiplier: float) -> Iterator[Naming]:
    """Any change for the worse. It has no threshold that a multiplier could move."""
    return _named_at_changes(seen, 0.0)


def verified_change_point(seen: Seen, multiplier: float) -> Iterator[Naming]:
    """As Greyhound: a change counts if the mean after it is 10 % above that before."""
    return _named_at_changes(seen, 0.10 * multiplier)


RULES: dict[str, Rule] = {
    "NVRx, relative score 0.75": nvrx,
    "TraceLens, last start": last_start,
    "mean x 2.0": mean_multiple,
    "median and MAD": median_mad,
    "relative 1.2 or 5 ms": relative,
    "traceml, 10 % of the step": traceml,
    "change point": change_point,
    "change point, verified": verified_change_point,
}


def named(rule: str, seen: Seen, job: str, multiplier: float = 1.0) -> list[Naming]:
    """Whom a rule names first, each rank once, in the order of the steps."""
    if RULES[rule] is traceml:
        found = traceml(seen, multiplier, sharded=job in ("fsdp", "tensor_by_data"))
    else:
        found = RULES[rule](seen, multiplier)
    first: dict[int, Naming] = {}
    for naming in found:
        first.setdefault(naming.rank, naming)
    return list(first.values())
