"""The rows as a table, for a terminal or as markdown, and as a figure."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from rich import box
from rich.console import Console
from rich.table import Table
from scores import Record, Row


def _spread(digits: int) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        if not value:
            return "-"
        middle, low, high = (f"{part:.{digits}f}" for part in value)
        return middle if low == high else f"{middle} [{low}, {high}]"

    return text


COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "seconds": ("time, s", _spread(1)),
    "speed_up": ("speed-up", _spread(2)),
    "bound_speed_up": ("bound", _spread(2)),
    "share_of_bound": ("share of bound", _spread(2)),
    "accuracy": ("accuracy", _spread(3)),
    "test_loss": ("loss", _spread(2)),
    "identical": ("identical steps", lambda value: "{} of {}".format(*value) if value else "-"),
    "filled_by_proxy": ("filled by proxy", _spread(0)),
    "messages_per_10000_slots": ("messages a 10,000 slots", _spread(0)),
}


def table(rows: Sequence[Row], out: TextIO, markdown: bool) -> None:
    """Medians over the runs, with the smallest and the largest."""
    view = Table(box=box.MARKDOWN if markdown else box.SIMPLE_HEAD)
    for column in ("workload", "scheme", *(title for title, _ in COLUMNS.values())):
        view.add_column(column, no_wrap=markdown)
    for row in rows:
        if "seconds" in row:
            view.add_row(row["workload"], row["scheme"], *(text(row.get(name)) for name, (_, text) in COLUMNS.items()))
        else:
            view.add_row(row["workload"], row["scheme"], *(["not run"] + ["-"] * (len(COLUMNS) - 1)))
    Console(file=out, width=400 if markdown else 240).print(view)


def remarks(rows: Sequence[Row]) -> list[str]:
    """What the table has no column for, a line each."""
    said = []
    for row in rows:
        name = f"{row['workload']}, {row['scheme']}"
        said += [f"{name}: failed: {text}" for text in row["failed"]]
        if row["scheme"] == "plain" and "seconds" in row:
            said.append(
                f"{name}: healthy step {_spread(1)(row['healthy_ms'])} ms, of which beyond the base "
                f"{_spread(3)(row['beyond_base'])}, a rank's processor time {_spread(3)(row['own_share'])}; "
                f"time over synchronous {_spread(3)(row['plain_of_synchronous'])}"
            )
        if row.get("reasons") or row.get("lines"):
            said.append(f"{name}: {'; '.join([*row['reasons'], *row['lines']])}")
        if row["workload"] == "D6" and row.get("lead_steps"):
            median, largest = (_spread(1)(value) for value in row["lead_steps"])
            said.append(
                f"{name}: others ahead when rank 0 ended its duty, in steps: median {median}, largest {largest}"
            )
        if row["workload"] == "healthy" and row.get("as_plain_steps"):
            said.append(f"{name}: steps with the weights of the plain run of that round: {row['as_plain_steps']}")
    return said


def draw(records: Sequence[Record], path: Path) -> None:
    """Speed-up over plain of every run, its median as a bar; the bound's as a line above. Needs matplotlib."""
    importlib.import_module("matplotlib").use("Agg")  # no display is needed
    pyplot = importlib.import_module("matplotlib.pyplot")
    from scores import rows as rows_of

    rows = [row for row in rows_of(records) if row.get("speed_up") and row["scheme"] != "plain"]
    if not rows:
        return
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    figure, axes = pyplot.subplots(figsize=(1.5 + 1.1 * len(workloads), 4), layout="constrained")
    width = 0.8 / len(schemes)
    for number, scheme in enumerate(schemes):
        own = [row for row in rows if row["scheme"] == scheme]
        places = [workloads.index(row["workload"]) + (number + 0.5) * width - 0.4 for row in own]
        middle = [row["speed_up"][0] for row in own]
        reach = [
            [row["speed_up"][0] - row["speed_up"][1] for row in own],
            [row["speed_up"][2] - row["speed_up"][0] for row in own],
        ]
        axes.bar(places, middle, width, yerr=reach, label=scheme, color=f"C{number}", error_kw={"elinewidth": 0.8})
    for place, workload in enumerate(workloads):
        bound = next(row["bound_speed_up"][0] for row in rows if row["workload"] == workload)
        axes.hlines(bound, place - 0.45, place + 0.45, color="black", label=None if place else "bound")
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set_xticks(range(len(workloads)), workloads)
    axes.set_ylabel("speed-up over plain DDP")
    figure.legend(loc="outside upper center", fontsize=8, ncols=6)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
