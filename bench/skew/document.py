"""The JSON document of a run: one object with everything that is needed to read its rows later.

Schema 1. Fields are added, never renamed; units are in the names; `null` stands for what was not measured. A row has
the fields of `rows.Row`, a spread those of `rows.Spread`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from itertools import pairwise
from typing import Any

from .patterns import SEED
from .plan import Plan
from .rows import Row

SCHEMA = 1
METHOD = (
    "Salimi Beni, Cosenza, Hunold: MPI Collective Algorithm Selection in the Presence of Process Arrival Patterns, "
    "IEEE CLUSTER 2024, doi:10.1109/CLUSTER59578.2024.00017; ranks synchronised by windows on one clock, and times "
    "from the first arrival to the last completion, as in ReproMPI; bandwidths as in nccl-tests"
)
CLOCK_READS = 1000


@dataclass(frozen=True)
class Machine:
    """Where it ran and how busy that was. Load averages are the kernel's, over one minute."""

    host: str
    system: str
    cpu: str
    cores: int
    gpus: int
    load_average_before: float
    load_average_after: float


def build(
    plan: Plan, rows: Sequence[Row], machine: Machine, versions: dict[str, str], command: str, seconds: float
) -> dict[str, Any]:
    """The document. Pure but for the date and the cost of reading the clock."""
    return {
        "schema": SCHEMA,
        "type": "skew_bench",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "seconds": round(seconds, 1),
        "machine": dataclasses.asdict(machine),
        "versions": versions,
        "method": METHOD,
        "clock": {"name": "CLOCK_MONOTONIC", "shared_by_all_ranks": True, "read_ns": clock_read_ns()},
        "plan": {**dataclasses.asdict(plan), "seed": SEED},
        "rows": [_rounded(dataclasses.asdict(row)) for row in rows],
    }


def text(document: dict[str, Any]) -> str:
    """One row a line: readable, and a changed row is a changed line."""
    head = json.dumps({**document, "rows": []}, indent=1)
    rows = ",\n  ".join(json.dumps(row) for row in document["rows"])
    return head.removesuffix('"rows": []\n}') + f'"rows": [\n  {rows}\n ]\n}}\n'


def versions(torch_version: str, nccl: str | None) -> dict[str, str]:
    found = {
        "torch_straggler": _version("torch-straggler"),
        "torch": torch_version,
        "python": platform.python_version(),
    }
    return found if nccl is None else {**found, "nccl": nccl}


def machine(gpus: int, load_before: float) -> Machine:
    return Machine(
        host=platform.node(),
        system=f"{platform.system()} {platform.release()}",
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        gpus=gpus,
        load_average_before=load_before,
        load_average_after=os.getloadavg()[0],
    )


def clock_read_ns() -> int:
    """What one stamp costs: the median distance of two stamps in a row. The clock's own resolution is 1 ns on Linux."""
    stamps = [time.monotonic_ns() for _ in range(CLOCK_READS)]
    return sorted(later - earlier for earlier, later in pairwise(stamps))[CLOCK_READS // 2]


def _rounded(value: Any) -> Any:
    """Floats to nine digits: more were not measured."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine() or sys.platform
