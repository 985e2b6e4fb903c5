"""Chaos: long runs of four ranks that are late or stopped, whose control messages are lost, and what must hold after.

Every rank stalls at random for up to 20 ms, random ranks are stopped (SIGSTOP) for up to 200 ms from outside, and
control messages are lost, repeated or delayed. At each step the parameters of all ranks have the same bits, and at the
end the reduced gradients and what is owed add up to what all ranks brought, exactly.

    PYTHONPATH=tests:tests/multi_rank .venv/bin/python tests/mitigation/chaos.py --steps 100000
    PYTHONPATH=tests:tests/multi_rank .venv/bin/python tests/mitigation/chaos.py --steps 12000 --stall 200

So many steps in all, shared among the programs; with stalls of 200 ms ranks are many steps behind. Prints the table of
CHAOS.md.
"""

import argparse
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from os import kill
from pathlib import Path
from typing import Any

import numpy as np
from closed_form import brought, owed, segments
from program_table import CHAOS, of_steps
from programs import Array, Program, read
from ranks import run_ranks

HERE = Path(__file__).resolve().parent
FAULTS = "where=control,probability=0.3,ms=10"  # a tenth of the messages lost, repeated, late
RUN = f"""
sys.path.insert(0, {str(HERE)!r})
import program_table, programs
from pathlib import Path
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)
named = [program_table.BY_NAME[name] for name in os.environ["PROGRAMS"].split(",")]
long = [program_table.of_steps(program, int(os.environ["STEPS"]), float(os.environ["STALL_MS"])) for program in named]
programs.run(long, RANK, Path(os.environ["TEST_JOB"]), store)
"""


class Stops:
    """Stops a random rank for up to 200 ms, now and then."""

    def __init__(self, seed: int, pause: float = 1.0) -> None:
        self.random, self.pause, self.count = random.Random(seed), pause, 0
        self.next = time.monotonic() + 3  # the ranks have begun

    def __call__(self, pids: Sequence[int]) -> None:
        if time.monotonic() < self.next:
            return
        victim = self.random.choice(pids)
        try:
            kill(victim, signal.SIGSTOP)
            time.sleep(self.random.uniform(0.01, 0.2))
            kill(victim, signal.SIGCONT)
        except ProcessLookupError:
            return
        self.count += 1
        self.next = time.monotonic() + self.random.expovariate(1 / self.pause)


@dataclass(frozen=True)
class Result:
    """What came of one program; `wrong` is empty where all held."""

    program: Program
    filled: int
    late: int
    dropped: int
    staleness: int
    messages: int
    wrong: list[str]

    def row(self) -> str:
        cells = [self.program.title, self.program.steps, self.program.staleness]
        cells += [self.filled, self.late, self.dropped, self.staleness, self.messages]
        return "| " + " | ".join(str(cell) for cell in [*cells, "; ".join(self.wrong) or "all hold"]) + " |"


COLUMNS = (
    "program",
    "steps",
    "staleness allowed",
    "slots filled",
    "applied late",
    "dropped",
    "largest staleness",
    "messages",
    "",
)
HEAD = f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}"


@dataclass(frozen=True)
class Outcome:
    """What came of one job."""

    results: list[Result]
    seconds: float
    stops: int


def run(programs: Sequence[Program], steps: int, folder: Path, backend: str, stall_ms: float = 20) -> Outcome:
    """Runs each program for so many steps; the longest stall that a rank makes itself lasts `stall_ms`."""
    stops, begun = Stops(programs[0].seed), time.monotonic()
    settings = {
        "PROGRAMS": ",".join(p.name for p in programs),
        "STEPS": str(steps),
        "BACKEND": backend,
        "STALL_MS": str(stall_ms),
    }
    if backend != "gloo":
        settings["STRAGGLER_INJECT"] = FAULTS
    patience = 60 + (0.18 + stall_ms / 1000) * steps * len(programs)
    run_ranks(folder, RUN, 4, patience, disturb=stops, **settings).succeeded()
    results = []
    for program in (of_steps(program, steps, stall_ms) for program in programs):
        seen = [read(folder, program, rank) for rank in range(program.ranks)]
        ledgers = [rank["ledger_after_flush"] for rank in seen if rank["ledger_after_flush"]]
        buckets = [bucket for ledger in ledgers for bucket in ledger["buckets"]]
        results.append(
            Result(
                program,
                sum(ledger["filled_by_proxy"] for ledger in ledgers),
                sum(bucket["late"] for bucket in buckets),
                sum(bucket["dropped"] for bucket in buckets),
                max((bucket["staleness_max"] for bucket in buckets), default=0),
                sum(ledger["messages"] for ledger in ledgers),
                wrongs(program, seen),
            )
        )
    return Outcome(results, time.monotonic() - begun, stops.count)


def wrongs(program: Program, seen: list[dict[str, Any]]) -> list[str]:
    """What does not hold."""
    found = []
    for rank, one in enumerate(seen):
        for name in ("digests", "buffers"):
            differ = [step for step, (a, b) in enumerate(zip(one[name], seen[0][name], strict=True)) if a != b]
            if differ:
                found.append(f"{name} of rank {rank} differ from step {differ[0]} on")
    for name, steps in (("owed", program.steps), ("owed_after_flush", program.steps + 1)):
        applied = seen[0]["reduced"][:steps].astype(np.float64)
        missing = sum(brought(program, rank, steps) for rank in range(program.ranks))
        compared = finite(program, len(applied), missing)
        difference = np.subtract(missing, applied, out=np.zeros_like(missing), where=compared).sum(0) - owed(
            program, seen, name
        )
        # What BatchNorm divides, and gradients that are not finite and what they took with them, are no exact sums.
        exact = [place for place in segments(program) if is_exact(program, place)]
        rounding = [place for place in segments(program)[-1:] if program.batch_norm]
        if any(np.any(difference[place] != 0) for place in exact):
            found.append(f"{name}: the sums differ by {difference.tolist()}")
        if any(np.any(np.abs(difference[place]) > 1e-5 * steps) for place in rounding):
            found.append(f"{name}: the sums differ by {difference.tolist()}")
    for rank, one in enumerate(seen):
        for bucket in (one["ledger_after_flush"] or {"buckets": []})["buckets"]:
            parts = sum(bucket[part] for part in ("on_time", "late", "dropped", "pending"))
            if bucket["produced"] != parts or not 0 <= program.steps + 1 - bucket["produced"] <= 4:
                found.append(f"the ledger of rank {rank} is not exact: {bucket}")
            if bucket["dropped"] > len(program.poisoned):
                found.append(f"rank {rank} dropped {bucket['dropped']} gradients")
            if bucket["staleness_max"] > program.staleness + 1:
                found.append(f"rank {rank} has a staleness of {bucket['staleness_max']}")
    return found


def is_exact(program: Program, place: slice) -> bool:
    return place != segments(program)[-1] or not (program.poisoned or program.batch_norm)


def finite(program: Program, steps: int, missing: Array) -> Array:
    """Where sums are compared at all: not in the parameter that has gradients that are not finite."""
    everywhere = np.ones_like(missing[:steps], dtype=bool)
    if program.poisoned:
        everywhere[:, segments(program)[-1]] = False
    return everywhere


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000, help="in all; each program has an equal share")
    parser.add_argument("--stall", type=float, default=20, metavar="MS", help="the longest that a rank makes itself")
    parser.add_argument("--only", default="", help="a pattern of names")
    parser.add_argument("--backend", default="straggler_gloo")
    arguments = parser.parse_args()
    chosen = [program for program in CHAOS if re.search(arguments.only, program.name)]
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(chosen, -(-arguments.steps // len(chosen)), Path(folder), arguments.backend, arguments.stall)
    print(HEAD)
    for result in outcome.results:
        print(result.row())
    print(f"\n{outcome.seconds:.0f} s; {outcome.stops} times a rank was stopped.")
    return int(any(result.wrong for result in outcome.results))


if __name__ == "__main__":
    sys.exit(main())
