"""The rows as a picture: what is left to wait for after the last arrival, against the arrival skew.

Both are in transfer times. A panel for each collective and size; a line for each pattern, solid for the bare backend,
dashed for the wrapped one. A line that falls shows that part of the operation was done while the last rank was still
missing; a flat one at 1, that nothing was. Needs matplotlib, the extra `bench`.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import InputError
from .patterns import PATTERNS
from .rows import Row
from .table import size_text

SUFFIXES = (".pdf", ".png", ".svg")
STYLES = {"bare": "-", "wrapped": "--"}


def check(path: Path) -> None:
    """Says, before anything is measured, that the figure could not be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError("--figure needs matplotlib, which is not installed: pip install matplotlib")
    if path.suffix not in SUFFIXES:
        raise InputError(f"--figure {str(path)!r} has no known ending; allowed: {', '.join(SUFFIXES)}")


def draw(rows: Sequence[Row], path: Path) -> None:
    """Writes the figure; its size follows the number of panels."""
    importlib.import_module("matplotlib").use("Agg")  # no display is needed
    pyplot = importlib.import_module("matplotlib.pyplot")
    columns = {
        name: [row for row in rows if row.collective == name] for name in dict.fromkeys(r.collective for r in rows)
    }
    lines = max(len(_sizes(found)) for found in columns.values())
    figure, axes = pyplot.subplots(
        lines,
        len(columns),
        figsize=(4 * len(columns), 3 * lines + 0.5),
        squeeze=False,
        sharex=True,
        layout="constrained",
    )
    for column, (collective, found) in enumerate(columns.items()):
        for line, (backend, size) in enumerate(_sizes(found)):
            axes[line][column].set_title(f"{collective}, {backend}, {size_text(size)}", fontsize=9)
            _panel(axes[line][column], [row for row in found if row.bytes == size and backend in row.backend])
    figure.supxlabel("arrival skew, in transfer times")
    figure.supylabel("last arrival to last completion, in transfer times")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _sizes(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """Bare backends and sizes: the panels of one collective."""
    return list(dict.fromkeys((row.backend, row.bytes) for row in rows if row.role == "bare"))


def _panel(axes: Any, rows: Sequence[Row]) -> None:
    for number, pattern in enumerate(name for name in PATTERNS if name != "none"):
        for role, style in STYLES.items():
            skews, times = curve([row for row in rows if row.role == role], pattern)
            label = pattern if role == "bare" else f"{pattern}, wrapped"
            axes.plot(skews, times, style, marker="o", markersize=3, color=f"C{number}", label=label)
    axes.set_ylim(bottom=0)


def curve(rows: Sequence[Row], pattern: str) -> tuple[list[float], list[float]]:
    """Points of one line. A pattern begins where there is no arrival skew, with the row of the pattern `none`."""
    points = sorted(
        (row.skew_transfer_times, row.last_to_last_us.median / row.transfer_us)
        for row in rows
        if row.pattern in ("none", pattern)
    )
    return [skew for skew, _ in points], [time for _, time in points]
