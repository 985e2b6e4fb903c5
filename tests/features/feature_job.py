"""One feature, run by bare torchrun and by `straggler run`, and what its records hold against what torch counted.

Of each rank and each group, three accounts are compared:

- our records;
- the entries of gloo's Flight Recorder, which know group and kind of each collective;
- the group's sequence number, which counts all operations, point to point too.

The last two are gloo's own, in C++ (counting/sitecustomize.py says what they lack), and have to be the same in both
jobs: so nothing was added to a group, and nothing kept from it.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from features import Feature
from ranks import read_lines, run_command

COUNTING = Path(__file__).parent / "counting"
ENTRIES = 50_000  # of the Flight Recorder; more would be lost
COMPLAINT = "; training goes on"  # how each complaint of ours ends
ONCE = "each once"

Counts = Counter[tuple[str, str]]  # by group and kind
Totals = Counter[str]  # by group


@dataclass(frozen=True)
class Account:
    """What torch counted of one rank, in all its attempts."""

    collectives: Counts
    operations: Totals


@dataclass(frozen=True)
class Ran:
    """A job that has ended. `output` is by attempt and rank; `records` are empty for bare torchrun."""

    exit_code: int
    output: dict[str, str]
    stderr: str
    accounts: list[Account]
    records: list[list[dict[str, Any]]]


@dataclass(frozen=True)
class Outcome:
    """The two cells of a row, all that was found to be wrong, and whether the feature works with bare torchrun."""

    works: str
    recorded: str
    details: str
    works_without: bool


# ---- Running ---------------------------------------------------------------------------------------------------------


def run(feature: Feature, folder: Path, *launcher: str) -> Ran:
    """Runs the feature's script in a folder of its own."""
    (folder / "counts").mkdir(parents=True)
    settings = {
        "PYTHONPATH": os.pathsep.join(filter(None, (str(COUNTING), os.environ.get("PYTHONPATH")))),
        "FEATURE_COUNTS": str(folder / "counts"),
        "TORCH_FR_BUFFER_SIZE": str(ENTRIES),
        "STRAGGLER_DIR": str(folder / "records"),
        **feature.settings,
    }
    where = ("--standalone", f"--nproc-per-node={feature.ranks}", "--redirects=3", f"--log-dir={folder / 'logs'}")
    script = (str(feature.script), *feature.arguments)
    done = run_command(folder, *launcher, *where, *feature.options, *script, seconds=150, **settings)
    output = {"/".join(path.parts[-3:-1]): path.read_text() for path in sorted((folder / "logs").rglob("stdout.log"))}
    said = [path.read_text() for path in sorted((folder / "logs").rglob("stderr.log"))]
    files = [folder / "records" / f"rank-{rank:05}.jsonl" for rank in range(feature.ranks)]
    records = [read_lines(file) if file.exists() else [] for file in files]
    accounts = [account(folder / "counts", rank) for rank in range(feature.ranks)]
    return Ran(done.returncode, output, "".join([*said, done.stderr]), accounts, records)


def account(folder: Path, rank: int) -> Account:
    collectives, operations = Counts(), Totals()
    for file in folder.glob(f"{rank}.*.json"):
        counted = json.loads(file.read_text())
        assert len(counted["entries"]) < ENTRIES, "the Flight Recorder is full"
        operations.update(counted["totals"])
        entries = ((name, as_counted(kind.removeprefix("gloo:"))) for name, _, kind in counted["entries"])
        collectives.update(entries)
    return Account(collectives, operations)


def as_counted(kind: str) -> str:
    """Gloo makes a reduce_scatter of an all_reduce, and its Flight Recorder says so."""
    return "all_reduce" if kind == "reduce_scatter" else kind


# ---- Comparing -------------------------------------------------------------------------------------------------------


def compare(feature: Feature, folder: Path) -> Outcome:
    """Runs both jobs, at the same time, and compares them."""
    with ThreadPoolExecutor(2) as threads:
        bare = threads.submit(run, feature, folder / "bare", "torchrun")
        ours = threads.submit(run, feature, folder / "ours", "straggler", "run")
        jobs = bare.result(), ours.result()
    wrong, unrecorded = list(differences(feature, *jobs)), list(unlike_records(*jobs))
    return Outcome(
        f"no: {wrong[0]}" if wrong else feature.works,
        f"no: {unrecorded[0]}" if unrecorded else ONCE,
        "\n".join([*wrong, *unrecorded, "---- bare", jobs[0].stderr[-4000:], "---- ours", jobs[1].stderr[-4000:]]),
        jobs[0].exit_code == 0,
    )


def differences(feature: Feature, bare: Ran, ours: Ran) -> Iterator[str]:
    """What is not as it is with bare torchrun."""
    if bare.exit_code != ours.exit_code:
        yield f"exit code {ours.exit_code} instead of {bare.exit_code}"
    if bare.exit_code != 0:
        yield f"exit code {bare.exit_code} with bare torchrun"
    if not any(bare.output.values()):
        yield "no output with bare torchrun"
    if bare.output.keys() != ours.output.keys():
        yield f"output of {list(ours.output)} instead of {list(bare.output)}"
    for place, text in bare.output.items():
        if ours.output.get(place) != text:
            yield f"other output in {place}: {text!r} became {ours.output.get(place)!r}"
    said = [line for line in ours.stderr.splitlines() if line.endswith(COMPLAINT)]
    if [line for line in said if feature.said not in line] or len(said) != (1 if feature.said else 0):
        yield f"we said {said}"


def unlike_records(bare: Ran, ours: Ran) -> Iterator[str]:
    """Where the accounts do not agree. None of them may be empty."""
    for rank, (theirs, counted, records) in enumerate(zip(bare.accounts, ours.accounts, ours.records, strict=True)):
        if theirs != counted:
            yield f"rank {rank}: torch counted {unequal(theirs, counted)} with bare torchrun"
        collectives, operations = Counts(), Totals()
        for record in records:
            group, monitored = record["process_group"][0], record["method"] == "monitoredBarrier"
            operations[group] += 2 if monitored else 1  # of two ranks, it is a send and a receive on each
            if not record["is_p2p"] and not monitored:
                collectives[group, as_counted(record["kind"])] += 1
        if not records:
            yield f"rank {rank}: nothing is in the records"
        recorded = Account(collectives, operations)
        if any(group for group, _ in counted.collectives):
            counted = of_named_groups(counted)
        else:
            recorded, counted = without_groups(recorded), without_groups(counted)
        if recorded != counted:
            yield f"rank {rank}: recorded {unequal(recorded, counted)} by torch's count"


def of_named_groups(of: Account) -> Account:
    """Without what RPC has gloo do while it starts, in a group of its own making that has no name."""
    return Account(Counts({key: number for key, number in of.collectives.items() if key[0]}), of.operations)


def without_groups(of: Account) -> Account:
    """What can be compared under DETAIL, where the Flight Recorder does not know the group of a collective, and has the
    all_gathers too with which torch checks each: all other kinds, and how many operations each group had."""
    collectives = Counts()
    for (_, kind), number in of.collectives.items():
        if kind != "all_gather":
            collectives["", kind] += number
    return Account(collectives, of.operations)


def unequal(one: Account, other: Account) -> str:
    """What the one has and the other has not, and the reverse."""

    def only(left: Account, right: Account) -> dict[Any, int]:
        return {**(left.collectives - right.collectives), **(left.operations - right.operations)}

    return f"{only(one, other)} for {only(other, one)}"
