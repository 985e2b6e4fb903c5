"""Which slots were filled for late ranks in a recorded run, for a run that is to repeat it.

A rank writes what was filled for it to `participation-rank-<r>.jsonl` in `STRAGGLER_DIR`: a first line of type
`participation_start`, then one of type `participation` for each slot. `STRAGGLER_FORCE_PARTICIPATION` names such a
file, or the folder of a run, whose files of all ranks are read. From equal gradients the run then gives equal results,
bit for bit, whichever rank is late this time.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

SETTING = "STRAGGLER_FORCE_PARTICIPATION"
SCHEMA = 1
NUMBERS = ("slot", "reached", "root", "reduction", "dtype", "elements", "bytes")


class Script(NamedTuple):
    """`fills`: this rank's, by slot. `participants`: of slots in which some rank did not take part, how many did."""

    fills: list[dict[str, Any]]
    participants: dict[int, int]


def read(path: str, rank: int, world_size: int, mode: str) -> Script:
    """Reads a recorded run.

    Args:
        path: a file, or a folder that holds one file a rank.
        rank: global rank of this process.
        world_size: ranks of the group.
        mode: `carry` or `drop`.

    Raises:
        ValueError: nothing can be read there, or it is not of such a run; the text says what is wrong, and where.
    """
    fills: list[dict[str, Any]] = []
    absent: Counter[int] = Counter()
    for file in _files(Path(path)):
        lines = _lines(file)
        owner = None
        for number, line in enumerate(lines, 1):
            where = f"{SETTING}: line {number} of {file}"
            if line.get("type") == "participation_start":
                owner = line.get("rank")
                _check_start(line, where, world_size, mode)
                if file.match("participation-rank-*.jsonl") and file.stem != f"participation-rank-{owner}":
                    raise ValueError(f"{where} is of rank {owner}, which is not the rank in the file's name")
            elif line.get("type") == "participation":
                _check_fill(line, where, world_size, owner)
                absent[line["slot"]] += line["bucket"] is not None
                if line["rank"] == rank:
                    fills.append(line)
            else:
                raise ValueError(f"{where} is no line of a participation record")
    fills.sort(key=lambda line: int(line["slot"]))
    if len({line["slot"] for line in fills}) < len(fills):
        raise ValueError(f"{SETTING}='{path}' holds more than one run of rank {rank}: a slot is filled twice in it")
    return Script(fills, {slot: world_size - count for slot, count in absent.items() if count})


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(path.glob("participation-rank-*.jsonl"))
    if not files:
        raise ValueError(
            f"{SETTING}='{path}' is no recorded run; allowed: a participation-rank-*.jsonl file, or a folder with them"
        )
    return files


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{SETTING}: {file} cannot be read: {error}") from None
    lines = []
    for number, raw in enumerate(text.splitlines(), 1):
        try:
            line = json.loads(raw)
        except ValueError:
            line = None
        if not isinstance(line, dict):
            raise ValueError(f"{SETTING}: line {number} of {file} is no JSON object")
        lines.append(line)
    if not lines or lines[0].get("type") != "participation_start":
        raise ValueError(f"{SETTING}: {file} does not begin with a line of type participation_start")
    return lines


def _check_start(line: dict[str, Any], where: str, world_size: int, mode: str) -> None:
    if line.get("schema") != SCHEMA:
        raise ValueError(f"{where} is of record schema {line.get('schema')}; allowed: {SCHEMA}")
    if line.get("world_size") != world_size:
        raise ValueError(f"{where} is of a run of {line.get('world_size')} ranks; allowed: one of {world_size}")
    if line.get("mode") != mode:
        raise ValueError(f"{where} is of a run in mode {line.get('mode')}; allowed: one in mode {mode}")


def _check_fill(line: dict[str, Any], where: str, world_size: int, owner: object) -> None:
    def whole(name: str, end: int = 2**63) -> bool:
        value = line.get(name)
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end

    bucket = line.get("bucket", "")
    scale = line.get("scale")
    valid = (
        all(whole(name) for name in NUMBERS)
        and whole("rank", world_size)
        and line["rank"] == owner
        and whole("root", world_size)
        and whole("reduction", 256)
        and whole("dtype", 128)
        and line.get("kind") in ("all_reduce", "broadcast")
        and (bucket is None or whole("bucket", 2**32))
        and (bucket is None) == (line["kind"] == "broadcast")
        and isinstance(scale, (int, float))
        and 0 < scale < float("inf")
        and line["reached"] <= line["slot"]
    )
    if not valid:
        raise ValueError(f"{where} is damaged: a field is missing, or its value is not possible")
