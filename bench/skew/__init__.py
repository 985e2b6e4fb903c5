"""`straggler bench`: what an arrival skew does to a collective, on the bare backend and on the wrapped one.

Read in this order; a file needs only files above it.

| file | holds |
| --- | --- |
| `errors` | what is refused, and how it is said |
| `parsing` | text of the command line to values |
| `collective_kinds` | the four collectives: sizes of their buffers, bus bandwidth |
| `patterns` | arrival patterns, as shares of the arrival skew |
| `plan` | what is measured: options, checked and expanded; the order of one round |
| `trial` | what one rank and all ranks stamped at one operation |
| `rows` | trials to rows: medians, quartiles, ratios. Pure, as all above |
| `document`, `table`, `figure` | rows to JSON, to a terminal, to a picture |
| `operation`, `window`, `prctl`, `rank_process` | one rank: buffers and call, waiting for an instant, the loop |
| `job` | starts the ranks, limits their time, always ends them |
| `command` | the command line |

Nothing but `operation`, `rank_process` and `job` needs torch; `figure` needs matplotlib.
"""

from .command import main

__all__ = ["main"]
