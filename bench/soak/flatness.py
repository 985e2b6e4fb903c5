"""Whether a series of measurements grows: its slope, with an interval that allows for neighbours being alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

BLOCKS = 20
FEWEST_BLOCKS = 5  # of a short run, with two samples each
WARM_UP = 0.1  # of the time: buffers fill, and the allocator takes what it will need


def slope(times: Sequence[float], values: Sequence[float]) -> list[float]:
    """Growth of `values` by unit of `times`, and its 95 % interval: [slope, low, high].

    What is left after the warm-up is cut into blocks, and a line is fitted to the means of these: single samples of
    resident memory hardly differ from the one before, so an interval from them would be far too narrow.

    Raises:
        ValueError: fewer than two samples a block.
    """
    at, of = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    kept = at >= at[0] + WARM_UP * (at[-1] - at[0])
    at, of = at[kept], of[kept]
    blocks = min(BLOCKS, len(at) // 2)
    if blocks < FEWEST_BLOCKS:
        raise ValueError(f"{len(at)} samples are too few for {FEWEST_BLOCKS} blocks")
    means = [[block.mean() for block in np.array_split(series, blocks)] for series in (at, of)]
    if np.ptp(means[1]) == 0:
        return [0.0, 0.0, 0.0]
    fit = stats.linregress(*means)
    width = stats.t.ppf(0.975, blocks - 2) * fit.stderr
    return [float(value) for value in (fit.slope, fit.slope - width, fit.slope + width)]
