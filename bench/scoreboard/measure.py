"""Runs a launch and leaves, for each of its sessions, a folder with what was seen, and a line of results.

The folder has `job.jsonl`, the records of the session as the root wrote them, and `seen.npz`: `times`, what the
job noted itself (ranks x steps x phases, seconds: input, forward, backward, update ended), and `arrivals`, when each
rank entered each collective (operations x ranks, seconds, NaN for a rank that is not in the group).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cases import MICRO_BATCHES, Case, Launch
from disturbances import Competing, Disturbance, Network, Quota, links, on_each_link
from numpy.typing import NDArray
from scoring import noise

HERE = Path(__file__).resolve().parent
JOBS = HERE.parent / "jobs"
sys.path.insert(0, str(JOBS))
import launch as shared  # noqa: E402

PROGRESS = re.compile(r"session (\d+) step (\d+)")
STEPS_A_LINE = 10  # of progress
PREPARED_AT = 20  # step
PRODUCTS = 4  # of 256 x 256, in each of a step's layers: some 8 ms of processor time, for what limits it
PORT = 29630
MARK = "SCOREBOARD_LAUNCH"  # in the environment of a launch: by it the driver finds the ranks
NEARLY = 0.02  # the detector may miss the first steps of a job whose steps it has to find
VERDICT_FIELDS = ("kind", "ranks", "cause", "excess_ms", "share", "since_step", "step", "confidence")

Result = dict[str, Any]


class LaunchError(Exception):
    """The job failed, or a session left no report, with the last lines of its standard error; or this machine refused
    the disturbance."""


class Progress:
    """Puts the disturbance of each session on its rank when the job says that it has come to that step, and takes it
    off before the session ends."""

    def __init__(self, launch: Launch, mark: str, disturbance: Disturbance) -> None:
        self.launch, self.mark, self.disturbance = launch, mark, disturbance
        self.started: dict[int, float] = {}  # session to the time
        self.on = False

    def said(self, line: str) -> None:
        found = PROGRESS.search(line)
        if found is None:
            return
        number, step = int(found[1]), int(found[2])
        case = self.launch.cases[number]
        if step == PREPARED_AT:
            assert case.culprit is not None
            self.disturbance.prepare(processes(self.mark, case.ranks), case.culprit)
        elif step >= case.begins and number not in self.started:
            self.disturbance.start(case.share, case.base_ms / 1e3)
            self.started[number], self.on = time.monotonic(), True
        elif self.on and step >= case.steps - STEPS_A_LINE:
            self.disturbance.stop()
            self.on = False


def processes(mark: str, ranks: int) -> list[int]:
    """The ranks of the launch that has this mark in its environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                environment = (entry / "environ").read_bytes().split(b"\0")
                if mark.encode() in environment:
                    fields = dict(part.split(b"=", 1) for part in environment if b"=" in part)
                    if b"RANK" in fields:
                        found[int(fields[b"RANK"])] = int(entry.name)
    return [found[rank] for rank in range(ranks)]


def run(launch: Launch, out: Path) -> Iterator[Result]:
    """One result for each session of the launch.

    Raises:
        LaunchError: see there.
    """
    with tempfile.TemporaryDirectory(prefix="straggler-scoreboard-") as name:
        folder, mark = Path(name), str(uuid.uuid4())
        environment = {**os.environ, "STRAGGLER_DIR": name, "OMP_NUM_THREADS": "1", MARK: mark}
        limit = 90 + sum(10 + case.steps * (case.base_ms + 200) / 1e3 for case in launch.cases)
        try:
            with _disturbed(launch, folder) as (command, disturbance):
                progress = Progress(launch, f"{MARK}={mark}", disturbance) if disturbance else None
                code, lines = shared.watch(command, environment, limit, progress.said if progress else None)
        except (OSError, KeyError, subprocess.CalledProcessError) as error:  # a rank that is not there, no root, no tc
            raise LaunchError(f"{launch}: {error!r}") from error
        if code != 0:
            raise LaunchError(f"{launch}: exit code {code}\n" + "\n".join(line for _, line in lines[-30:]))
        yield from _results(launch, folder, lines, progress.started if progress else {}, out)


@contextlib.contextmanager
def _disturbed(launch: Launch, folder: Path) -> Iterator[tuple[list[str], Disturbance | None]]:
    """The command, and what the driver does beside it; in the end that is off."""
    straggler = [str(Path(sys.executable).with_name("straggler")), "run"]
    with contextlib.ExitStack() as stack:
        if launch.means == "network":
            prefix = stack.enter_context(links(launch.ranks))
            command = on_each_link(prefix, launch.ranks, [*straggler, *_job(launch, folder)], PORT)
            disturbance: Disturbance | None = Network(prefix)
        else:
            command = [*straggler, f"--nproc-per-node={launch.ranks}", *_inject(launch), *_job(launch, folder)]
            disturbance = {"quota": Quota, "competing": Competing}.get(launch.means, lambda: None)()
        if disturbance:
            stack.callback(disturbance.stop)
        yield command, disturbance


def _job(launch: Launch, folder: Path) -> list[str]:
    case = launch.cases[0]
    job = [str(JOBS / f"{launch.job}.py"), f"--sessions={len(launch.cases)}", f"--steps={case.steps}"]
    job += [f"--base-ms={case.base_ms}", f"--times={folder}"]
    return job + ([f"--products={PRODUCTS}"] if launch.means in ("quota", "competing") else [])


def _inject(launch: Launch) -> Iterator[str]:
    first = 0
    for case in launch.cases:
        for rule in case.rules():
            yield from ("--inject", shared.shifted(rule, first, case.steps, MICRO_BATCHES.get(case.job, 1)))
        first += case.steps


# ---- What a session left ---------------------------------------------------------------------------------------------


def _results(
    launch: Launch, folder: Path, lines: list[shared.Line], started: dict[int, float], out: Path
) -> Iterator[Result]:
    with (folder / "job.jsonl").open() as file:
        sessions = [own for own in shared.by_session(map(json.loads, file)) if own[-1]["world_size"] == launch.ranks]
    if len(sessions) != len(launch.cases):
        raise LaunchError(f"{launch}: {len(sessions)} reports of {len(launch.cases)} sessions")
    times = np.stack([np.load(folder / f"times-{rank}.npy") for rank in range(launch.ranks)])
    operations = [_operations(folder / f"rank-{rank:05d}.jsonl") for rank in range(launch.ranks)]
    for number, (case, records) in enumerate(zip(launch.cases, sessions, strict=True)):
        own = times[:, number]
        begin, end = own[:, 0, 0].min(), own[:, -1, -1].max()
        kept = out / "runs" / case.key.replace(" ", "-").replace("%", "")
        kept.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(kept / "seen.npz", times=own, arrivals=arrivals(operations, begin, end))
        with (kept / "job.jsonl").open("w") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        since = case.begins
        if number in started:
            since = int(np.searchsorted(own[0, :, -1], started[number]))
        yield result(case, records, own, shared.within(lines, begin, end), since) | {"folder": kept.name}


def _operations(path: Path) -> dict[tuple[str, int, float], float]:
    """Group, number in it and rounded time, to arrival in seconds: of collectives alone. Names and numbers begin anew
    in each session, so that a pair is not unique in a launch."""
    found = {}
    with path.open() as file:
        for operation in map(json.loads, file):
            if operation["type"] == "operation" and operation["collective_seq_id"] is not None:
                at = operation["arrival_ns"] / 1e9
                found[operation["process_group"][0], operation["collective_seq_id"], at] = at
    return found


def arrivals(operations: list[dict[tuple[str, int, float], float]], begin: float, end: float) -> NDArray[np.float64]:
    """Operations x ranks, in the order of their first arrival; those that begin while the session trains."""
    table: dict[tuple[str, int], dict[int, float]] = {}
    for rank, own in enumerate(operations):
        for (group, number, _), at in own.items():
            if begin <= at <= end:
                table.setdefault((group, number), {})[rank] = at
    rows = sorted((own for own in table.values() if len(own) > 1), key=lambda own: min(own.values()))
    return np.array([[own.get(rank, np.nan) for rank in range(len(operations))] for own in rows]).reshape(
        len(rows), len(operations)
    )


def result(
    case: Case, records: list[shared.Record], times: NDArray[np.float64], lines: list[shared.Line], since: int
) -> Result:
    """A line of the results. `since`: the first step with the delay, as it really was."""
    report = records[-1]
    verdicts = [record for record in records if record["type"] == "verdict"]
    windows = [record for record in records if record["type"] == "window"]
    counted = max((w["first_step"] + len(w["self_us"]) for w in windows), default=0)  # by the detector
    ends = times[0, :, -1]
    lengths = np.diff(times[:, :, -1].max(axis=0))
    late, before = lengths[since:], lengths[max(0, since - 50) : since - 1]
    told = iter(line for line in lines if line[1].startswith("STRAGGLER"))
    said = []
    for verdict in verdicts:
        line = next(told, None) if verdict["kind"] == "straggler" else None
        at = None if line is None else int(np.searchsorted(ends, line[0]))
        said.append({name: verdict[name] for name in VERDICT_FIELDS} | {"line_step": at})
    rank = 0 if case.culprit is None else case.culprit
    excess = excess_of(windows, rank, case.ranks) if abs(counted - case.steps) <= NEARLY * case.steps else None
    blamed = [row for row in report["ranks"] if row["rank"] == case.culprit]
    return {
        "key": case.key,
        "delay": case.delay,
        "share": case.share,
        "job": case.job,
        "ranks": case.ranks,
        "culprit": case.culprit,
        "seed": case.seed,
        "steps": case.steps,
        "base_ms": case.base_ms,
        "since": since,
        "injected_ms": case.ms if case.truth.means == "injection" and case.truth.blames else None,
        "longer_ms": round(1e3 * float(np.median(late) - np.median(before)), 3),
        "step_ms": round(1e3 * float(np.median(before)), 3),
        "noise_step_ms": _rounded(excess, since, 1),
        "noise_window_ms": _rounded(excess, since, records[0]["window"]),
        "counted_steps": counted,
        "steps_found_by": report["steps_found_by"],
        "window": records[0]["window"],
        "verdicts": said,
        "windows": report["windows_compared"],
        "incomplete": report["windows_incomplete"],
        "collectives": report["collectives"],
        "dropped": report["records_dropped"],
        "time_lost_share": blamed[0]["time_lost_share"] if blamed else None,
        "seconds": round(float(times[:, -1, -1].max() - times[:, 0, 0].min()), 3),
    }


def excess_of(windows: list[shared.Record], rank: int, ranks: int) -> NDArray[np.float64] | None:
    """A rank's self time less the median of the others', milliseconds by step; None if a step of a rank is missing."""
    own = [np.concatenate([w["self_us"] for w in windows if w["rank"] == of] or [[]]) for of in range(ranks)]
    if len({len(times) for times in own}) != 1 or not len(own[0]):
        return None
    table = np.stack(own) / 1e3
    others = np.median(np.delete(table, rank, axis=0), axis=0)
    excess: NDArray[np.float64] = table[rank] - others
    return excess


def _rounded(excess: NDArray[np.float64] | None, since: int, length: int) -> float | None:
    found = None if excess is None else noise(excess, since, length)
    return None if found is None else round(found, 4)
