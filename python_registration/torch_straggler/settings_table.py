"""`straggler settings`: the table of settings, as the C++ side declares it, with what this environment sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

COLUMNS = ("name", "value", "default", "type", "unit", "source", "text")


def show(rows: Iterable[Mapping[str, str | None]]) -> None:
    """Prints the rows of `_C.settings()` on standard output; what is unset shows as `-`."""
    table = Table()
    for column in COLUMNS:
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    for row in rows:
        cells = {column: row[column] or "-" for column in COLUMNS}
        cells["text"] += f" (allowed: {row['allowed']})"
        table.add_row(*(Text(cells[column]) for column in COLUMNS))
    Console().print(table)
