"""The rows on a terminal: a table for each bare backend, a line for each cell, and a summary under it.

A line shows the bare backend's times, and beside them the ratio of the wrapped one and of the A/A control. A ratio of
the wrapped backend means something only as far as it lies beyond the control's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich import box
from rich.console import Console
from rich.table import Table

from .parsing import UNITS
from .rows import MISSED_NS, Row, Spread, spread

COLUMNS = (
    "collective",
    "bytes",
    "pattern",
    "skew\n(T)",
    "imposed\n(ms)",
    "measured\n(ms)",
    "first to last\n(ms)",
    "last to last\n(ms)",
    "bus\n(MB/s)",
    "wrapped\nratio",
    "A/A control\nratio",
    "wrapped -\nbare (µs)",
    "equal",
)
WIDTH = 160  # of the widest line; a narrower terminal wraps, so that nothing is cut off


def show(rows: Sequence[Row], console: Console) -> None:
    console.width = max(console.width, WIDTH)
    for cells in _by_family(rows):
        bare = cells[0][0]
        title = f"{bare.backend}, {bare.ranks} ranks; median ±half the distance of the quartiles"
        table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for column in COLUMNS:
            table.add_column(column, justify="left" if column in ("collective", "pattern") else "right", no_wrap=True)
        for _, block in groupby(cells, key=lambda cell: (cell[0].collective, cell[0].bytes)):
            for cell in block:
                table.add_row(*_line(cell))
            table.add_section()
        console.print(table)
        for line in summary(cells):
            console.print(line, highlight=False, markup=False)


def summary(cells: Sequence[Sequence[Row]]) -> Iterator[str]:
    """Over all cells: ratio and difference of the wrapped backend and of the control; what was not bitwise equal."""
    for role in ("wrapped", "control"):
        found = [row for cell in cells for row in cell if row.role == role]
        ratios = [row.ratio_to_bare.median for row in found if row.ratio_to_bare is not None]
        differences = [row.difference_to_bare_us.median for row in found if row.difference_to_bare_us is not None]
        if found:
            yield (
                f"{found[0].backend} ({role}) against bare, {len(found)} cells, last arrival to last completion: ratio "
                f"{_text(spread(ratios), '.2f')}, difference {_text(spread(differences), '+.0f')} µs"
            )
    missed = sum(row.missed for cell in cells for row in cell)
    unequal = sum(not row.bitwise_equal for cell in cells for row in cell)
    every = sum(row.measurements for cell in cells for row in cell)
    yield f"operations in which a rank missed its instant by more than {MISSED_NS // 1000} µs: {missed} of {every}"
    yield f"rows whose results differ from the bare backend's in a bit: {unequal} ({every} operations compared)"


def size_text(size: int) -> str:
    """Bytes with the largest suffix that leaves a whole number: `64K`, `1M`, `100`."""
    unit = next(unit for unit in reversed(UNITS) if size % UNITS[unit] == 0)
    return f"{size // UNITS[unit]}{unit}"


def _by_family(rows: Sequence[Row]) -> Iterator[list[list[Row]]]:
    """Cells of one bare backend; a cell is its rows, of which the bare one comes first."""
    cells: list[list[Row]] = []
    for row in rows:
        if row.role == "bare":
            cells.append([])
        cells[-1].append(row)
    for _, family in groupby(cells, key=lambda cell: cell[0].backend):
        yield list(family)


def _line(cell: Sequence[Row]) -> list[str]:
    row = cell[0]
    by_role = {row.role: row for row in cell}
    wrapped, control = by_role.get("wrapped"), by_role.get("control")
    return [
        row.collective,
        size_text(row.bytes),
        row.pattern,
        f"{row.skew_transfer_times:g}",
        f"{row.arrival_skew_imposed_us / 1e3:.2f}",
        f"{row.arrival_skew_us.median / 1e3:.2f}",
        _milliseconds(row.first_to_last_us),
        _milliseconds(row.last_to_last_us),
        f"{row.bus_bandwidth_gb_s * 1e3:.1f}",
        _text(wrapped.ratio_to_bare if wrapped else None, ".2f"),
        _text(control.ratio_to_bare if control else None, ".2f"),
        _text(wrapped.difference_to_bare_us if wrapped else None, "+.0f"),
        "yes" if all(row.bitwise_equal for row in cell) else "NO",
    ]


def _milliseconds(value: Spread) -> str:
    return _text(Spread(value.median / 1e3, value.q1 / 1e3, value.q3 / 1e3), ".2f")


def _text(value: Spread | None, form: str) -> str:
    return "-" if value is None else f"{value.median:{form}} ±{(value.q3 - value.q1) / 2:{form.lstrip('+')}}"
