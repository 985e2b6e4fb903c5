"""Recorded runs through our detector again: whole and less or more sensitive, in parts, and made-up runs like them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cases import culprits
from scoring import Result

import torch_straggler
from torch_straggler.replay import NoReportError

GATES = ("absolute_gate_ms", "relative_gate", "noise_gate")  # an excess below all of them is nobody's concern
PART_STEPS, PART_STARTS = 240, (0, 60, 120, 180)
NEARLY = 0.02  # the detector may miss the first steps of a job whose steps it has to find
MADE_UP = {  # delays that the generator has, and shares of the base
    "D1": (0.05, 0.1, 0.2, 0.5),
    "D3": (0.05, 0.2),
    "D6": (0.0,),
    "D7": (0.3,),
    "D8": (0.3,),
    "D9": (0.0,),
    "clean": (0.0,),
}
FROM_STEP, WINDOWS = 80, 42
QUIET_SEEDS = 3


def named(folder: Path, multiplier: float) -> list[tuple[int, int]]:
    """(rank, step) of each rank that is named, each once, with the detector's gates times `multiplier`; steps are those
    that the detector counts."""
    try:
        gates = {name: float(value) for name, value in torch_straggler.rescore(folder).options if name in GATES}
        found = torch_straggler.rescore(folder, **{name: multiplier * value for name, value in gates.items()})
    except NoReportError:  # no window of it can be judged
        return []
    first: dict[int, int] = {}
    for verdict in found.verdicts:
        if verdict.kind == "straggler" and verdict.step is not None:
            for rank in verdict.ranks:
                first.setdefault(rank, verdict.step)
    return list(first.items())


# ---- Parts of runs ---------------------------------------------------------------------------------------------------


def part(records: Sequence[dict[str, Any]], start: int) -> list[dict[str, Any]]:
    """The records of a session that begins with step `start` and has PART_STEPS: its windows, counted from there, what
    came in between them, and who the ranks are and what they do. `start` is the first step of a window."""
    inside = [
        place
        for place, record in enumerate(records)
        if record["type"] == "window" and start <= record["first_step"] < start + PART_STEPS
    ]
    if not inside:
        return []
    kept = [record for record in records[: inside[0]] if record["type"] in ("session", "rank", "group", "program")]
    for place in range(inside[0], inside[-1] + 1):
        record = records[place]
        if record["type"] != "window":
            kept.append(record)
        elif start <= record["first_step"] < start + PART_STEPS:
            kept.append(record | {"first_step": record["first_step"] - start})
    return [record for record in kept if record["type"] != "verdict"]


def parts(result: Result, folder: Path) -> Iterator[Result]:
    """Each part of a run, fed by itself: a line as of a run. Of a run whose steps the detector counts otherwise there
    are none."""
    if abs(result["counted_steps"] - result["steps"]) > NEARLY * result["steps"]:
        return
    with (folder / "job.jsonl").open() as file:
        records = [json.loads(line) for line in file]
    for start in PART_STARTS:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "job.jsonl"
            path.write_text("".join(json.dumps(record) + "\n" for record in part(records, start)))
            try:
                found = torch_straggler.rescore(path)
            except NoReportError:
                continue
        yield _line(
            result, found, key=f"{result['key']} from {start}", steps=PART_STEPS, since=max(0, result["since"] - start)
        )


# ---- Made-up runs ----------------------------------------------------------------------------------------------------


def descriptions(clean: Result) -> Iterator[tuple[Result, str]]:
    """Runs to be made up with the noise of a clean one: what is true of each, and its description for the generator."""
    for delay, shares in MADE_UP.items():
        blames = delay in ("D1", "D3")
        for share in shares:
            ms = share * clean["base_ms"]
            for culprit in culprits(clean["ranks"]) if blames else (None,) * QUIET_SEEDS:
                key = f"made up: {delay} {share:.0%} {clean['job']} {clean['ranks']}"
                true = clean | {
                    "delay": delay,
                    "share": share,
                    "culprit": culprit,
                    "injected_ms": ms if blames else None,
                }
                yield true | {"key": key}, f"windows={WINDOWS},from_step={FROM_STEP}" + _described(delay, ms, culprit)


def _described(delay: str, ms: float, culprit: int | None) -> str:
    if delay == "clean":
        return ""
    return f",delay={delay}" + (f",ms={ms:g}" if ms else "") + ("" if culprit is None else f",rank={culprit}")


def made_up(clean: Result, folder: Path) -> Iterator[Result]:
    for number, (true, description) in enumerate(descriptions(clean)):
        found = torch_straggler.rescore_synthetic(f"{description},seed={number + 1}", like=folder)
        steps = WINDOWS * found.window
        yield _line(true, found, key=f"{true['key']} {number}", steps=steps, since=FROM_STEP)


def _line(result: Result, found: Any, **other: Any) -> Result:
    """As of a run, with what the detector said of it when it was fed again."""
    verdicts = [
        {"kind": v.kind, "ranks": list(v.ranks), "cause": v.cause, "step": v.step, "line_step": None}
        for v in found.verdicts
    ]
    collectives = result["collectives"] * other["steps"] // result["steps"]
    return {
        **{name: result[name] for name in LINE},
        "time_lost_share": None,
        "collectives": collectives,
        "counted_steps": other["steps"],
        "window": found.window,
        "windows": found.windows,
        "incomplete": found.windows_incomplete,
        "verdicts": verdicts,
        **other,
    }


LINE = ("delay", "share", "job", "ranks", "culprit", "base_ms", "injected_ms", "longer_ms", "step_ms")
