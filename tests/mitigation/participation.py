"""The participation log of a run: which slots were filled for which rank, and with what.

A rank's own call brings the gradient of its slot and what the rank still owes of the bucket. A slot that was filled
for it brings, in `carry`, the gradients of the earlier slots that were filled for it, as far as the rank had reached
them by then and as they had not been brought before; in `drop` nothing.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from closed_form import segments
from programs import Program


@dataclass(frozen=True)
class Filled:
    """A slot that was filled for a rank."""

    slot: int
    reached: int
    bucket: int | None
    elements: int


@dataclass(frozen=True)
class Contribution:
    """What a rank brought to a step's reduction of one parameter: its own gradient, and those of earlier steps."""

    own: bool
    earlier: tuple[int, ...]


class Participation:
    """What was logged of one group, with one parameter a bucket."""

    def __init__(self, program: Program, records: Path) -> None:
        self.program = program
        self.heads: list[dict[str, Any]] = []
        self.filled: list[list[Filled]] = []
        for rank in range(program.ranks):
            lines = [json.loads(line) for line in (records / f"participation-rank-{rank}.jsonl").open()]
            self.heads.append(lines[0])
            self.filled.append([read(line) for line in lines[1:]])
        # The slots of all buckets, in their order: the reductions of backwards. In the first step, of a static graph in
        # the first two, before it knows in what order gradients come, DDP has one bucket for each model.
        operations = [json.loads(line) for line in (records / "rank-00000.jsonl").open()]
        reduced = [op for op in operations if op["kind"] == "all_reduce" and op["graph_task"] is not None]
        whole = 4 * segments(program)[-1].stop // program.models
        sizes = {4 * (place.stop - place.start) for place in segments(program)}
        self.first = sum(op["bytes"] == whole for op in reduced) // program.models
        self.slots = [op["collective_seq_id"] for op in reduced if op["bytes"] in sizes]
        self.at_once = len(segments(program))  # buckets in a step
        self.steps = self.first + len(self.slots) // self.at_once

    def buckets(self) -> dict[int, slice]:
        """Where the parameter of each bucket that was ever filled lies: by size; among equal models, by order."""
        positions: dict[int, int] = {}
        sizes: dict[int, int] = {}
        for line in (line for lines in self.filled for line in lines if line.bucket is not None):
            position = self.slots.index(line.slot) % self.at_once
            assert positions.setdefault(line.bucket, position) == position
            assert sizes.setdefault(line.bucket, line.elements) == line.elements
        half = self.at_once // self.program.models
        places = {}
        for bucket, position in positions.items():
            alike = [place for place in segments(self.program) if place.stop - place.start == sizes[bucket]]
            places[bucket] = alike[position // half]
        return places

    def contributions(self, bucket: int) -> Iterator[tuple[int, list[Contribution]]]:
        """By step, from the first that has the bucket on: what each rank brought of a bucket."""
        first = next(f.slot for lines in self.filled for f in lines if f.bucket == bucket)
        position = self.slots.index(first) % self.at_once
        of_bucket = self.slots[position :: self.at_once]
        step_of = {slot: step for step, slot in enumerate(of_bucket, self.first)}
        lines = [{f.slot: f for f in of_rank if f.bucket == bucket} for of_rank in self.filled]
        owed: list[list[int]] = [[] for _ in lines]  # slots that were filled for a rank, not brought since
        for slot in of_bucket:
            brought = []
            for of_rank, pending in zip(lines, owed, strict=True):
                filled = of_rank.get(slot)
                ready = [k for k in pending if filled is None or k < filled.reached]
                if self.program.mode == "drop":
                    ready = []
                pending[:] = [k for k in pending if k not in ready]
                if filled:
                    pending.append(slot)
                brought.append(Contribution(filled is None, tuple(step_of[k] for k in ready)))
            yield step_of[slot], brought


def read(line: dict[str, Any]) -> Filled:
    assert (line["schema"], line["type"], line["kind"] in ("all_reduce", "broadcast")) == (1, "participation", True)
    return Filled(line["slot"], line["reached"], line["bucket"], line["elements"])
