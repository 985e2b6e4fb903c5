"""A script on several ranks: real processes, each with an exit code, an output and records of its own.

Ranks meet over a TCPStore in pytest's process, as those of torchrun meet over its agent's: it outlives every rank, and
is fresh for each job. What is still there at the end of a job, or when its time is up, is ended.
"""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist
from python_process import environment

# What every script begins with.
MANY_RANKS = '''
import json, os, signal, sys, threading, time
from datetime import timedelta
import torch, torch.distributed as dist
torch.set_num_threads(1)
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BACKEND = os.environ.get("BACKEND", "straggler_gloo")
rounds = 0

def store_of_round(server="launcher"):
    """A store without keys: that of the launcher under a prefix, or one in the process of rank 0."""
    global rounds
    rounds += 1
    launcher = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)
    if server == "launcher":
        return dist.PrefixStore(f"round{rounds}", launcher)
    if RANK == 0:
        store = dist.TCPStore("127.0.0.1", 0, WORLD, is_master=True, wait_for_workers=False)
        launcher.set(f"port{rounds}", str(store.port))
        return store
    return dist.TCPStore("127.0.0.1", int(launcher.get(f"port{rounds}")), WORLD, is_master=False)

def init(backend=BACKEND, server="launcher", **options):
    dist.init_process_group(backend, store=store_of_round(server), rank=RANK, world_size=WORLD, **options)

def backend_of(group=None):
    return (group or dist.group.WORLD)._get_backend(torch.device("cpu"))

def tell(**values):
    print(json.dumps(values), flush=True)
'''

# A layer that sleeps for 10 ms in forward, and as long in backward.
SLEEPING_LAYER = """
class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(32, 32)

    def forward(self, x):
        time.sleep(0.01)
        out = self.linear(x)
        out.register_hook(lambda gradient: time.sleep(0.01))
        return out
"""

TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Rank:
    """How one rank ended, and when: on the monotonic clock, and in seconds after the start.

    A negative exit code is a signal.
    """

    number: int
    exit_code: int
    ended: float
    seconds: float
    stdout: str
    stderr: str

    @property
    def told(self) -> dict[str, Any]:
        """What its script told, taken together."""
        lines = [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]
        return {name: value for line in lines for name, value in line.items()}

    @property
    def error(self) -> str:
        """The class of the exception that ended the script; empty if none did."""
        lines = [re.sub(r"^\[rank\d+\]: ?", "", line) for line in self.stderr.splitlines()]
        if TRACEBACK not in lines:
            return ""
        after = lines[len(lines) - lines[::-1].index(TRACEBACK) :]
        return next(line for line in after if line and not line.startswith(" ")).split(":")[0]

    @property
    def our_lines(self) -> list[str]:
        """What we said on its standard error, the report and the armed line aside."""
        complaints = (line for line in self.stderr.splitlines() if line.startswith(("straggler: ", "torch_straggler")))
        return [line for line in complaints if "armed:" not in line and "compared (" not in line]


@dataclass(frozen=True)
class Job:
    """A job that has ended."""

    ranks: list[Rank]
    records: Path

    @property
    def exit_codes(self) -> list[int]:
        return [rank.exit_code for rank in self.ranks]

    @property
    def told(self) -> list[dict[str, Any]]:
        return [rank.told for rank in self.ranks]

    def succeeded(self) -> "Job":
        assert self.exit_codes == [0] * len(self.ranks), self.text()
        return self

    def operations(self, rank: int) -> list[dict[str, Any]]:
        """The `operation` records of a rank, in their order."""
        return read_lines(self.records / f"rank-{rank:05}.jsonl")

    def of_type(self, kind: str) -> list[dict[str, Any]]:
        """The records of a type in job.jsonl."""
        return [line for line in read_lines(self.records / "job.jsonl") if line["type"] == kind]

    @property
    def report(self) -> dict[str, Any]:
        return self.of_type("report")[-1]

    def text(self) -> str:
        """All that the ranks said, for a failed test."""
        return "\n".join(
            f"---- rank {r.number}: exit code {r.exit_code} after {r.seconds:.1f} s\n{r.stdout}{r.stderr}"
            for r in self.ranks
        )


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def run_ranks(
    folder: Path,
    code: str,
    ranks: int,
    seconds: float = 60,
    before: Callable[[int], Sequence[str]] = lambda rank: (),
    disturb: Callable[[Sequence[int]], None] = lambda pids: None,
    **settings: str,
) -> Job:
    """Runs `code` on each rank, with the functions of MANY_RANKS before it, and waits for all of them.

    `before` gives the words that come before the command of a rank, such as `unshare`. `disturb` is called again and
    again, while all ranks live, with their process ids. Settings are environment variables; records go to
    `folder`/records unless STRAGGLER_DIR is among them.

    Raises:
        AssertionError: the job took longer than `seconds`; with all that was said, and where Python was.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "script.py"
    script.write_text(MANY_RANKS + textwrap.dedent(code))
    records = Path(settings.setdefault("STRAGGLER_DIR", str(folder / "records")))
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    shared = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(server.port), **settings}
    processes: list[subprocess.Popen[bytes]] = []
    begun = time.monotonic()
    try:
        for rank in range(ranks):
            with (folder / f"{rank}.stdout").open("wb") as stdout, (folder / f"{rank}.stderr").open("wb") as stderr:
                processes.append(
                    subprocess.Popen(
                        [*before(rank), sys.executable, "-X", "faulthandler", str(script)],
                        env=environment(RANK=str(rank), LOCAL_RANK=str(rank), TEST_JOB=str(folder), **shared),
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        stdout=stdout,
                        stderr=stderr,
                    )
                )
        ends = wait(processes, begun + seconds, disturb)
    finally:
        end_all(str(folder))
    said = [[(folder / f"{r}.{name}").read_text() for name in ("stdout", "stderr")] for r in range(ranks)]
    codes = [process.wait() for process in processes]
    job = Job([Rank(r, codes[r], ends[r], ends[r] - begun, *said[r]) for r in range(ranks)], records)
    assert all(end < begun + seconds for end in ends.values()), f"not done after {seconds} s\n{job.text()}"
    return job


def run_command(folder: Path, *command: str, seconds: float = 90, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs an installed command, such as `straggler run`, and ends every process that it leaves or that is late."""
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / command[0]), *command[1:]],
        env=environment(TEST_JOB=str(folder), **settings),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    finally:
        end_all(str(folder))
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def run_beside_gloo(folder: Path, code: str, ranks: int = 2, **options: Any) -> tuple[Job, Job]:
    """Runs `code` with BACKEND set to straggler_gloo and, at the same time, to gloo. Gives both jobs, ours first."""
    names = ("straggler_gloo", "gloo")
    with ThreadPoolExecutor(len(names)) as threads:
        jobs = [threads.submit(run_ranks, folder / name, code, ranks, BACKEND=name, **options) for name in names]
        return jobs[0].result(), jobs[1].result()


def wait(
    processes: list[subprocess.Popen[bytes]], deadline: float, disturb: Callable[[Sequence[int]], None]
) -> dict[int, float]:
    """Waits until all have ended, or the deadline; gives the time of each end, by rank."""
    ends: dict[int, float] = {}
    while len(ends) < len(processes) and time.monotonic() < deadline:
        for rank, process in enumerate(processes):
            if rank not in ends and process.poll() is not None:
                ends[rank] = time.monotonic()
        if not ends:
            disturb([process.pid for process in processes])
        time.sleep(0.01)
    late = [rank for rank in range(len(processes)) if rank not in ends]
    for rank in late:
        processes[rank].send_signal(signal.SIGABRT)  # faulthandler says where it stood
    if late:
        time.sleep(1)
    return ends | {rank: time.monotonic() for rank in late}


def end_all(job: str) -> None:
    """Kills every process of the job, known by its environment: children of a rank too."""
    mark = f"TEST_JOB={job}\0".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes() + b"\0":
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue  # it has ended, or is not ours to look at
