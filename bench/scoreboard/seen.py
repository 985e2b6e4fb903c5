"""What other tools can see of a session: timers of the script's phases, and when collectives began. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PHASES = ("input", "forward", "backward", "update")  # as in the jobs' sessions.py


@dataclass(frozen=True)
class Seen:
    """`phases`: ranks x steps x PHASES, milliseconds. The first step's input is not known (NaN): nothing ended before
    it. `lateness`: collectives x ranks, milliseconds after the first rank that entered it; NaN: not of the group.
    `step_of`: the step in which each collective began."""

    phases: NDArray[np.float64]
    lateness: NDArray[np.float64]
    step_of: NDArray[np.int64]

    @property
    def ranks(self) -> int:
        return self.phases.shape[0]

    @property
    def steps(self) -> int:
        return self.phases.shape[1]

    def phase(self, name: str) -> NDArray[np.float64]:
        """Ranks x steps."""
        return self.phases[:, :, PHASES.index(name)]

    @property
    def step_ms(self) -> NDArray[np.float64]:
        """Ranks x steps: what a timer around the loop's body shows."""
        return self.phases.sum(axis=2)


def seen(times: NDArray[np.float64], arrivals: NDArray[np.float64]) -> Seen:
    """From the ends of the phases (ranks x steps x phases) and the arrivals (collectives x ranks), both in seconds.

    A step belongs to a collective if the collective's first rank entered it after rank 0 had ended the step before.
    """
    ranks, steps, phases = times.shape
    ends = times.reshape(ranks, steps * phases)
    lengths = np.diff(ends, axis=1, prepend=np.nan).reshape(ranks, steps, phases) * 1e3
    first = np.nanmin(arrivals, axis=1) if len(arrivals) else np.empty(0)
    step_of = np.minimum(np.searchsorted(times[0, :, -1], first), steps - 1)
    return Seen(lengths, (arrivals - first[:, None]) * 1e3, step_of)


def load(path: Path) -> Seen:
    with np.load(path) as kept:
        return seen(kept["times"], kept["arrivals"])
