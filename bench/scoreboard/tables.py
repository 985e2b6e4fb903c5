"""The results as tables, for a terminal or as markdown, and as figures."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import scoring
from baselines import RULES
from cases import DELAYS, LAYOUTS
from rich import box
from rich.console import Console
from rich.table import Table
from scoring import Result

OURS = "torch_straggler"
Replays = dict[tuple[str, str, float], list[list[int]]]  # key of a run, rule, multiplier: (rank, step) of each naming


class Writer:
    """Writes headings and tables, for a terminal or as markdown."""

    def __init__(self, out: TextIO, markdown: bool) -> None:
        self.console = Console(file=out, width=400 if markdown else 200)
        self.markdown = markdown

    def text(self, text: str) -> None:
        self.console.print(f"\n{text}\n", markup=False, highlight=False)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        view = Table(box=box.MARKDOWN if self.markdown else box.SIMPLE_HEAD)
        for column in columns:
            view.add_column(column, no_wrap=self.markdown)
        for row in rows:
            view.add_row(*row)
        self.console.print(view)


# ---- Who was named ---------------------------------------------------------------------------------------------------


def first_named(result: Result, rule: str, replays: Replays, multiplier: float = 1.0) -> list[tuple[int, float]]:
    """(rank, step) of each naming, in the order of the steps: by a rule, or by ours, of which that with its own gates
    is what was said while the job ran."""
    if rule == OURS and multiplier == 1.0:
        return [(naming.rank, naming.step) for naming in scoring.namings(result)]
    return [(rank, step) for rank, step in replays.get((result["key"], rule, multiplier), [])]


def is_right(result: Result, named: list[tuple[int, float]]) -> bool:
    """The culprit was named, once it was late, and nobody else ever; nobody at all where nobody is to blame."""
    if not scoring.truth(result).blames:
        return not named
    return [rank for rank, _ in named] == [result["culprit"]] and named[0][1] >= result["since"]


def groups(results: Sequence[Result]) -> list[tuple[str, float, list[Result]]]:
    """The rows: each delay and size, in the order of the list of delays."""
    keys = sorted({(list(DELAYS).index(r["delay"]), r["share"]) for r in results})
    names = list(DELAYS)
    return [
        (names[d], share, [r for r in results if r["delay"] == names[d] and r["share"] == share]) for d, share in keys
    ]


# ---- Tables ----------------------------------------------------------------------------------------------------------


def report(
    results: Sequence[Result], fed: Sequence[Result], replays: Replays, seeds: str, out: TextIO, markdown: bool
) -> None:
    writer = Writer(out, markdown)
    writer.text(f"{len(results)} runs, seeds for {seeds}")
    writer.text("Gates")
    gates = [(g.what, g.reached, g.needed, "pass" if g.passed else "FAIL") for g in scoring.gates(results)]
    writer.table(("what", "reached", "needed", ""), gates)
    if fed:
        writer.text(f"{OURS}, fed with recorded windows again; no gate is judged by it")
        writer.table(FED_COLUMNS, _fed(results, fed))
    writer.text("Runs with the right rank named and nobody else; D5 to D9 and clean: with nobody named")
    rules = [OURS, *(rule for rule in RULES if any(key[1] == rule for key in replays))]
    writer.table(("delay", "size", "of", *rules), _by_delay(results, rules, replays))
    writer.text(f"{OURS}, by delay")
    writer.table(OWN_COLUMNS, (_own_row(*group) for group in groups(results)))
    writer.text(f"{OURS}, by job: right of all runs, and windows abstained")
    writer.table(("job", *(f"{ranks} ranks" for ranks in (2, 4, 8))), _by_job(results))
    writer.text("Cause: true in the rows, told in the columns")
    writer.table(*_confusion(results))


FED_COLUMNS = (
    "what",
    "number",
    "recall",
    "precision",
    "where nobody is to blame",
    "a victim named",
    "D1 20 %: windows to name",
)


def _fed(results: Sequence[Result], fed: Sequence[Result]) -> Iterable[Sequence[str]]:
    """Parts of the runs, and runs made up with the noise of the clean ones, under the runs themselves."""
    made_up = [line for line in fed if line["key"].startswith("made up")]
    parts = [line for line in fed if not line["key"].startswith("made up")]
    for what, own in (("runs", results), ("parts of them", parts), ("made-up runs", made_up)):
        silent = scoring.quiet(own)
        whole = [line for line in own if (line["delay"], line["share"]) == ("D1", 0.2) and line["since"] > 0]
        to_name = scoring.median(scoring.windows_to_name(line) for line in whole)
        yield (
            what,
            str(len(own)),
            scoring.share_text(scoring.recall(own, least_steps=0)),
            scoring.share_text(scoring.precision(own)),
            f"{silent.alarms} named in {silent.runs}",
            scoring.share_text(scoring.victims(own)),
            "-" if to_name is None else f"{to_name:.1f}",
        )


def _size(share: float) -> str:
    return f"{share:.0%}" if share else "-"


def _by_delay(results: Sequence[Result], rules: Sequence[str], replays: Replays) -> Iterable[Sequence[str]]:
    for delay, share, own in groups(results):
        right = [sum(is_right(r, first_named(r, rule, replays)) for r in own) for rule in rules]
        yield f"{delay}: {DELAYS[delay].text}", _size(share), str(len(own)), *map(str, right)


OWN_COLUMNS = (
    "delay",
    "size",
    "runs",
    "to be named",
    "named",
    "others named",
    "steps to name",
    "bound, steps",
    "windows to name",
    "bound, windows",
    "line after, steps",
    "lost, error",
    "said",
)


def _own_row(delay: str, share: float, own: Sequence[Result]) -> Sequence[str]:
    def middle(of: Callable[[Result], float | None], form: str = "{:.1f}") -> str:
        found = scoring.median(of(result) for result in own)
        return "-" if found is None else form.format(found)

    def line_after(result: Result) -> float | None:
        found = scoring.hit(result)
        return None if found is None or found.line_step is None else found.line_step - result["since"] + 1

    blames = DELAYS[delay].blames
    others = sum(n.rank != r["culprit"] or not blames for r in own for n in scoring.namings(r))
    said = sorted({scoring.told(result) for result in own})
    return (
        delay,
        _size(share),
        str(len(own)),
        str(sum(map(scoring.has_to_be_named, own))) if blames else "-",
        str(sum(scoring.hit(r) is not None for r in own)) if blames else "-",
        str(others),
        middle(scoring.steps_to_name),
        middle(scoring.bound_steps) if blames else "-",
        middle(scoring.windows_to_name),
        middle(scoring.bound_windows) if blames else "-",
        middle(line_after),
        middle(scoring.lost_error, "{:+.1%}"),
        ", ".join(f"{what} {sum(scoring.told(r) == what for r in own)}" for what in said),
    )


def _by_job(results: Sequence[Result]) -> Iterable[Sequence[str]]:
    for job in LAYOUTS:
        cells = []
        for ranks in (2, 4, 8):
            own = [r for r in results if r["job"] == job and r["ranks"] == ranks]
            judged = [r for r in own if scoring.has_to_be_named(r) or not scoring.truth(r).blames]
            right = sum(is_right(r, first_named(r, OURS, {})) for r in judged)
            windows = sum(map(scoring.expected_windows, own))
            missing = sum(map(scoring.abstained_windows, own))
            cells.append(f"{right} of {len(judged)}, {missing / windows:.0%}" if windows else "-")
        yield job, *cells


def _confusion(results: Sequence[Result]) -> tuple[Sequence[str], list[Sequence[str]]]:
    counts = scoring.confusion(results)
    rows, columns = sorted({row for row, _ in counts}), sorted({column for _, column in counts})
    return ("", *columns), [(row, *(str(counts.get((row, column), 0)) for column in columns)) for row in rows]


# ---- Figures ---------------------------------------------------------------------------------------------------------


def roc(results: Sequence[Result], replays: Replays, rule: str, multiplier: float) -> tuple[float, float] | None:
    """Share of the quiet runs in which a rank was named, and share of those with a rank that has to be named in which
    it and nobody else was; of the runs that the rule has seen. None: there are none."""
    said = rule == OURS and multiplier == 1.0
    judged = [r for r in results if said or (r["key"], rule, multiplier) in replays]
    silent = [r for r in judged if not scoring.truth(r).blames]
    late = [r for r in judged if scoring.has_to_be_named(r)]
    if not silent or not late:
        return None
    false = sum(bool(first_named(r, rule, replays, multiplier)) for r in silent) / len(silent)
    return false, sum(is_right(r, first_named(r, rule, replays, multiplier)) for r in late) / len(late)


def draw(results: Sequence[Result], replays: Replays, path: Path) -> None:
    """Both figures beside each other. Needs matplotlib."""
    importlib.import_module("matplotlib").use("Agg")  # no display is needed
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5), layout="constrained")
    rules = [OURS, *(rule for rule in RULES if any(key[1] == rule for key in replays))]
    for number, rule in enumerate(rules):
        _draw_roc(left, results, replays, rule, f"C{number}")
    left.set(xlabel="quiet runs in which a rank was named", ylabel="late ranks named, and nobody else",
             xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))  # fmt: skip
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", fontsize=8, ncols=5)
    _draw_times(right, results, replays, rules)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _draw_roc(axes: Any, results: Sequence[Result], replays: Replays, rule: str, color: str) -> None:
    """The published threshold as a mark, the others as a line."""
    multipliers = sorted({m for _, name, m in replays if name == rule} | {1.0})
    points = [point for m in multipliers if (point := roc(results, replays, rule, m)) is not None]
    if len(points) > 1:
        axes.plot(*zip(*points, strict=True), color=color, linewidth=1)
    if (point := roc(results, replays, rule, 1.0)) is not None:
        axes.plot(*point, "*" if rule == OURS else "o", color=color, label=rule, markersize=12 if rule == OURS else 6)


def _draw_times(axes: Any, results: Sequence[Result], replays: Replays, rules: Sequence[str]) -> None:
    """Median steps to name by the size of the delay, where half of the runs or more were named, and the bound."""
    shares = sorted({r["share"] for r in results if scoring.has_to_be_named(r)})
    for number, rule in enumerate(rules):
        points = []
        for share in shares:
            own = [r for r in results if scoring.has_to_be_named(r) and r["share"] == share]
            times = [
                step + 1 - r["since"]
                for r in own
                for rank, step in first_named(r, rule, replays)
                if rank == r["culprit"] and step >= r["since"]
            ]
            if 2 * len(times) >= len(own):
                points.append((share, scoring.median(times)))
        if points:
            axes.plot(*zip(*points, strict=True), "*-" if rule == OURS else "o-", color=f"C{number}", markersize=6)
    bounds = [
        (share, scoring.median(scoring.bound_steps(r) for r in results if r["share"] == share)) for share in shares
    ]
    known = [(share, bound) for share, bound in bounds if bound is not None]
    if known:
        axes.plot(*zip(*known, strict=True), "k--", label="least possible, by steps")
        axes.legend(fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="delay, share of the base", ylabel="steps to name, median")
    axes.set_xticks(shares, [f"{share:.0%}" for share in shares], minor=False)
    axes.minorticks_off()
