"""From the lines of the results to the figures and the gates. Pure; every function says what it counts.

A naming is the first verdict that names a rank in a session. It is right if that rank was delayed, nobody may not be
blamed for it, and the delay had begun.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cases import DELAYS, Delay
from numpy.typing import NDArray
from scipy import stats

Result = dict[str, Any]

LEAST_MS, LEAST_SHARE, LEAST_STEPS = 1.0, 0.02, 400  # of what has to be named
ARL_WINDOWS = 100_000  # between false alarms, over all ranks: the detector's own (backend/detect/VERDICTS.md)
QUIET = ("clean", "D6", "D7", "D8", "D9")
NOT_SAID = "not_attributed"


@dataclass(frozen=True)
class Named:
    """A naming. `step`: the last that was judged, as the job counts them; `line_step`: the job's step in which the line
    came out, None if none was seen."""

    rank: int
    step: float
    line_step: int | None
    cause: str


@dataclass(frozen=True)
class Share:
    """So many of so many, and the 95 % interval (Clopper and Pearson)."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float]:
        """Share(0, 60).interval = (0, 0.060): with none seen in n, the upper limit is about 3.7 / n, as 2.5 % are left
        out at either side."""
        if not self.whole:
            return 0.0, 1.0
        found = stats.binomtest(self.part, self.whole).proportion_ci(method="exact")
        return float(found.low), float(found.high)


def truth(result: Result) -> Delay:
    return DELAYS[result["delay"]]


# ---- Namings ---------------------------------------------------------------------------------------------------------


def job_step(result: Result, step: int) -> float:
    """A step that the detector counts, as the job counts. Where it does not find the job's steps, it has others, of
    which there are as many in the same time."""
    counted = result["counted_steps"]
    return float((step + 1) * result["steps"] / counted - 1) if counted else float(step)


def namings(result: Result) -> list[Named]:
    """Each rank once, in the order in which they were named."""
    found: dict[int, Named] = {}
    for verdict in result["verdicts"]:
        if verdict["kind"] == "straggler":
            step = job_step(result, verdict["step"])
            for rank in verdict["ranks"]:
                found.setdefault(rank, Named(rank, step, verdict["line_step"], verdict["cause"]))
    return list(found.values())


def is_right(result: Result, naming: Named) -> bool:
    return truth(result).blames and naming.rank == result["culprit"] and naming.step >= result["since"]


def hit(result: Result) -> Named | None:
    """The right naming."""
    return next((naming for naming in namings(result) if is_right(result, naming)), None)


def late_ms(result: Result) -> float:
    """By how much a step is longer for the delay: as injected, else as the job's own timers saw it."""
    injected = result["injected_ms"]
    return float(result["longer_ms"] if injected is None else injected)


def has_to_be_named(result: Result, least_steps: int = LEAST_STEPS) -> bool:
    """An excess of at least 1 ms and 2 % of the step, in a run of at least 400 steps."""
    least = max(LEAST_MS, LEAST_SHARE * result["step_ms"])
    return truth(result).blames and late_ms(result) >= least and result["steps"] >= least_steps


def recall(results: Iterable[Result], least_steps: int = LEAST_STEPS) -> Share:
    """Of the runs in which a rank has to be named: those in which it was."""
    eligible = [result for result in results if has_to_be_named(result, least_steps)]
    return Share(sum(hit(result) is not None for result in eligible), len(eligible))


def precision(results: Iterable[Result]) -> Share:
    """Of all namings, in all runs: the right ones."""
    judged = [is_right(result, naming) for result in results for naming in namings(result)]
    return Share(sum(judged), len(judged))


def victims(results: Iterable[Result]) -> Share:
    """Of the runs with a culprit: those in which another rank was named, at any time."""
    runs = [result for result in results if truth(result).blames]
    return Share(sum(any(n.rank != r["culprit"] for n in namings(r)) for r in runs), len(runs))


# ---- False alarms ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quiet:
    """Runs in which nobody is to be named. `alarms`: namings; `collectives`: of a rank, summed over the runs."""

    runs: int
    alarms: int
    collectives: int
    windows: int
    abstained: int

    @property
    def upper_rate(self) -> float:
        """95 % upper bound of the alarms in 100,000 collectives, if alarms come by chance (Poisson, exact). None seen
        in n: 3.0 / n."""
        return float(stats.chi2.ppf(0.95, 2 * (self.alarms + 1)) / 2 / max(1, self.collectives) * 1e5)


def quiet(results: Iterable[Result]) -> Quiet:
    runs = [result for result in results if not truth(result).blames]
    return Quiet(
        runs=len(runs),
        alarms=sum(len(namings(result)) for result in runs),
        collectives=sum(result["collectives"] // result["ranks"] for result in runs),
        windows=sum(expected_windows(result) for result in runs),
        abstained=sum(abstained_windows(result) for result in runs),
    )


def expected_windows(result: Result) -> int:
    """Of the detector's own steps; of the job's where it found none."""
    return int((result["counted_steps"] or result["steps"]) // result["window"])


def abstained_windows(result: Result) -> int:
    """Windows that nothing was said of: those that were not judged or not with all ranks, or those at whose end the
    verdict in force was to abstain, whichever are more."""
    expected = expected_windows(result)
    unjudged = max(0, expected - result["windows"]) + result["incomplete"]
    begins: int | None = None
    steps = 0
    for verdict in [*result["verdicts"], {"kind": "end", "step": result["counted_steps"]}]:
        at = verdict["step"] or 0
        if begins is not None:
            steps += at - begins
        begins = at if verdict["kind"] == "abstain" else None
    return min(expected, max(unjudged, round(steps / result["window"])))


# ---- Time to name ----------------------------------------------------------------------------------------------------


def windows_to_name(result: Result) -> float | None:
    """Windows from the first late step to the end of the one with which the culprit was named."""
    found = hit(result)
    return None if found is None else (found.step + 1 - result["since"]) / result["window"]


def steps_to_name(result: Result) -> float | None:
    """Steps from the first late one to the last that was judged when the culprit was named, both included."""
    found = hit(result)
    return None if found is None else found.step + 1 - result["since"]


def least_delay(shift: float, noise: float, arl: float) -> float:
    """The fewest samples, on average, after which a change can be told by any test that has one false alarm in `arl`
    samples: ln(arl) over the Kullback-Leibler distance (Lorden, 1971, to first order for large arl; reached by the
    CUSUM, Moustakides, 1986). For normal samples whose mean moves by `shift`: shift² / (2 noise²).

    least_delay(2, 1, 100,000) = 11.5 / 2 = 5.8
    """
    return math.log(arl) / (shift**2 / (2 * noise**2))


def bound_windows(result: Result) -> float | None:
    """By the window's statistic, with the run's own noise: at least 1, as a window is told as a whole."""
    noise = result["noise_window_ms"]
    return None if not noise else max(1.0, least_delay(late_ms(result), noise, ARL_WINDOWS))


def bound_steps(result: Result) -> float | None:
    """By single steps: what a test could do that sees each step at once, at the same rate of false alarms in time."""
    noise = result["noise_step_ms"]
    return None if not noise else max(1.0, least_delay(late_ms(result), noise, ARL_WINDOWS * result["window"]))


def noise(excess: NDArray[np.float64], since: int, length: int) -> float | None:
    """Standard deviation of the medians of so many steps about their means before and after `since`; None with fewer
    than eight of them. `excess` is a rank's, by step. The first ten steps are not the job's own pace."""
    residuals: list[float] = []
    for part in (excess[10:since], excess[since:]):
        number = len(part) // length
        if number > 1:
            medians = np.median(part[: number * length].reshape(number, length), axis=1)
            residuals.extend((medians - medians.mean()) * math.sqrt(number / (number - 1)))
    return float(np.sqrt(np.mean(np.square(residuals)))) if len(residuals) >= 8 else None


# ---- Cause, cost -----------------------------------------------------------------------------------------------------


def told(result: Result) -> str:
    """What was said of a run: the cause of the culprit's last verdict, another kind, or nothing."""
    verdicts = result["verdicts"]
    if truth(result).blames:
        own = [v["cause"] for v in verdicts if v["kind"] == "straggler" and result["culprit"] in v["ranks"]]
        return own[-1] if own else "not named"
    if namings(result):
        return "a rank"
    kinds = [v["kind"] for v in verdicts if v["kind"] not in ("none", "abstain", "cleared")]
    return kinds[0] if kinds else "nothing"


def confusion(results: Iterable[Result]) -> dict[tuple[str, str], int]:
    """What is true (the cause, the kind, or nothing) and what was told, to the number of runs."""
    found: Counter[tuple[str, str]] = Counter()
    for result in results:
        of = truth(result)
        found[(of.cause or NOT_SAID) if of.blames else (of.kind or "nothing"), told(result)] += 1
    return dict(found)


def causes_right(results: Iterable[Result]) -> Share:
    """Of the runs with a culprit in which a cause was told, or the network was it: those in which it was that."""
    judged = []
    for result in results:
        of, said = truth(result), told(result)
        if of.blames and said not in ("not named", NOT_SAID):
            judged.append(said == of.cause)
        elif of.kind == "network" and said != "nothing":
            judged.append(said == "network")
    return Share(sum(judged), len(judged))


def lost_error(result: Result) -> float | None:
    """Of the time that the culprit cost: what was told over what was injected, less 1."""
    if result["injected_ms"] is None or result["time_lost_share"] is None or hit(result) is None:
        return None
    injected = result["injected_ms"] / 1e3 * (result["steps"] - result["since"])
    return float(result["time_lost_share"] * result["seconds"] / injected - 1)


def median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(statistics.median(known)) if known else None


# ---- Gates -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gate:
    what: str
    reached: str
    needed: str
    passed: bool


def gates(results: Sequence[Result]) -> list[Gate]:
    """What the scoreboard has to reach. A gate without a run to judge by is not passed."""
    eligible = [result for result in results if has_to_be_named(result)]
    found, right, silent = recall(results), precision(results), quiet(results)
    cause, blamed = causes_right(results), victims(results)
    ratios = {
        "windows": median(_ratio(windows_to_name(r), bound_windows(r)) for r in eligible),
        "steps": median(_ratio(steps_to_name(r), bound_steps(r)) for r in eligible),
    }
    at_20 = median(steps_to_name(r) for r in eligible if r["share"] == 0.2)
    lost = median(None if error is None else abs(error) for error in map(lost_error, eligible))
    abstained = silent.abstained / silent.windows if silent.windows else None
    return [
        Gate("recall", share_text(found), "99 %", _reaches(found.value, 0.99)),
        Gate("precision", share_text(right), "99.5 %", _reaches(right.value, 0.995)),
        Gate(
            "ranks named where nobody is to blame",
            f"{silent.alarms} in {silent.collectives} collectives of {silent.runs} runs; "
            f"at most {silent.upper_rate:.2g} in 100,000 (95 %)",
            "0 in 100,000",
            silent.alarms == 0 and silent.collectives >= 100_000,
        ),
        Gate("windows abstained there", _number(abstained, "{:.1%}"), "at most 5 %", _within(abstained, 0.05)),
        Gate("time to name over the bound, by windows", _number(ratios["windows"]), "at most 1.5, median",
             _within(ratios["windows"], 1.5)),
        Gate("time to name over the bound, by steps", _number(ratios["steps"]), "at most 1.5, median",
             _within(ratios["steps"], 1.5)),
        Gate("steps to name 20 %", _number(at_20), "3, median", _within(at_20, 3)),
        Gate("cause right, where one was told", share_text(cause), "97 %", _reaches(cause.value, 0.97)),
        Gate("lost time, told over injected: error", _number(lost, "{:.1%}"), "5 %, median", _within(lost, 0.05)),
        Gate("runs in which a victim was named", share_text(blamed), "at most 1 %", _within(blamed.value, 0.01)),
    ]  # fmt: skip


def _ratio(value: float | None, bound: float | None) -> float | None:
    return None if value is None or bound is None else value / bound


def _reaches(value: float | None, least: float) -> bool:
    return value is not None and value >= least


def _within(value: float | None, most: float) -> bool:
    return value is not None and value <= most


def share_text(share: Share) -> str:
    if share.value is None:
        return "no run"
    low, high = share.interval
    return f"{share.value:.1%} ({share.part} of {share.whole}; 95 %: {low:.1%} to {high:.1%})"


def _number(value: float | None, form: str = "{:.2f}") -> str:
    return "no run" if value is None else form.format(value)
