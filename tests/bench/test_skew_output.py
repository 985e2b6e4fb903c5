"""Rows as a document, as a table, and as the points of a figure."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from skew_samples import FAMILY, sample_rows

from torch_straggler.bench import document, figure, table
from torch_straggler.bench.errors import InputError
from torch_straggler.bench.plan import Plan

PLAN = Plan(2, (FAMILY,), ("all_reduce",), (4096,), ("one_late",), (2.0,), rounds=1, time_limit_s=60)
MACHINE = document.Machine("host", "Linux 6", "a CPU", 2, 0, 0.25, 1.5)


def printed() -> str:
    out = io.StringIO()
    table.show(sample_rows(), Console(file=out, width=40))
    return out.getvalue()


def test_the_document_says_what_ran_where_and_when() -> None:
    made = document.build(PLAN, sample_rows(), MACHINE, {"torch": "2.15.0"}, "straggler bench --ranks 2", 12.34)
    assert (made["schema"], made["type"], made["seconds"]) == (1, "skew_bench", 12.3)
    assert made["command"] == "straggler bench --ranks 2"
    assert made["versions"] == {"torch": "2.15.0"}
    assert made["machine"]["load_average_after"] == 1.5
    assert made["plan"]["skews"] == (2.0,)
    assert made["clock"]["shared_by_all_ranks"]
    assert 0 <= made["clock"]["read_ns"] < 1_000_000
    assert made["date"].endswith("+00:00")


def test_the_document_is_json_with_a_row_a_line_and_null_for_what_was_not_measured() -> None:
    text = document.text(document.build(PLAN, sample_rows(), MACHINE, {}, "", 1.0))
    lines = [line for line in text.splitlines() if '"backend"' in line]
    bare, control, wrapped = json.loads(text)["rows"]
    assert len(lines) == 3
    assert [json.loads(line.rstrip(",")) for line in lines] == [bare, control, wrapped]
    assert bare["ratio_to_bare"] is None
    assert control["ratio_to_bare"] == {"median": 1.025, "q1": 1.025, "q3": 1.025}
    assert wrapped["difference_to_bare_us"] == {"median": 20.0, "q1": 20.0, "q3": 20.0}


def test_a_document_without_rows_is_json_too() -> None:
    assert json.loads(document.text({"schema": 1, "rows": []})) == {"schema": 1, "rows": []}


def test_a_line_of_the_table_shows_both_ratios_uncut() -> None:
    (line,) = [line for line in printed().splitlines() if "one_late" in line]
    assert line.split() == [
        *("all_reduce", "4K", "one_late", "2", "0.10", "0.10"),
        *("0.50", "±0.00", "0.40", "±0.00", "8.2", "1.05", "±0.00", "1.02", "±0.00", "+20", "±0", "yes"),
    ]


def test_the_summary_sets_the_wrapped_backend_beside_the_control() -> None:
    text = printed()
    assert "straggler_gloo (wrapped) against bare, 1 cells, last arrival to last completion: ratio 1.05" in text
    assert "gloo (control) against bare, 1 cells, last arrival to last completion: ratio 1.02" in text
    assert "missed its instant by more than 200 µs: 0 of 6" in text
    assert "differ from the bare backend's in a bit: 0 (6 operations compared)" in text


@pytest.mark.parametrize(("size", "text"), [(4, "4"), (4096, "4K"), (1000, "1000"), (1 << 20, "1M"), (1 << 30, "1G")])
def test_sizes_are_written_as_they_are_read(size: int, text: str) -> None:
    assert table.size_text(size) == text


def test_a_curve_begins_without_arrival_skew_and_is_in_transfer_times() -> None:
    bare = [row for row in sample_rows() + sample_rows("none") if row.role == "bare"]
    assert figure.curve(bare, "one_late") == ([0.0, 2.0], [8.0, 8.0])


def test_a_figure_without_matplotlib_is_refused_with_the_command_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"^--figure needs matplotlib, .*: pip install matplotlib$"):
        figure.check(Path("a.png"))


def test_a_figure_of_an_unknown_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    with pytest.raises(InputError, match=r"allowed: \.pdf, \.png, \.svg$"):
        figure.check(Path("a.jpg"))
