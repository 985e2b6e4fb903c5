"""One run: its ranks as processes, started, stopped where the workload wants it, given a time limit, and ended.

The processes are forked from a server that has imported torch and made no group (multiprocessing's `forkserver`), so
that a run does not begin with seconds of imports on all cores.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rank
import torch.distributed as dist
from numpy.typing import NDArray
from rank import FREEZE, Run
from torch.multiprocessing.spawn import ProcessContext, ProcessException, start_processes
from workloads import WORKLOADS

Entry = Callable[[int, Run, int, Path, str], None]  # number, run, port of the store, folder, lighthouse

POLL_S = 0.05
GRACE_S = 3.0  # from the request to show the stacks to the kill
LAST_LINES = 40  # of a rank's standard error, when a run failed
SAYS = "straggler: "
OF_DDP = (
    "torch._dynamo.utils",
    "torch._dynamo.trace_rules",
)  # imported when the first DDP is made, in 1 s of processor


class RunError(Exception):
    """A rank failed, or the time limit was reached; with what the ranks said last."""


@dataclass(frozen=True)
class Seen:
    """What the ranks of a run saw. Arrays are ranks x steps, the warm-up first; what a rank did not run is NaN in
    `ends` (monotonic clock, seconds). `late`: seconds really slept beyond the base, and stopped. `told`: by rank."""

    ends: NDArray[np.float64]
    late: NDArray[np.float64]
    hashes: NDArray[np.uint32]
    told: list[dict[str, Any]]
    lines: list[str]  # of standard error, those of ours, each once


def write_digits(folder: Path, held_out: int) -> None:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16).astype(np.float32), labels[order]
    np.savez(
        folder / "digits.npz",
        images=images[held_out:],
        labels=labels[held_out:],
        test_images=images[:held_out],
        test_labels=labels[:held_out],
    )


@contextmanager
def prepared(held_out: int = 300) -> Iterator[Path]:
    """A folder with the samples, of which so many are not trained on, and a server that forks ranks."""
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)  # what is imported in advance is found by this alone
    multiprocessing.set_forkserver_preload(["__main__", "rank", *OF_DDP])
    with tempfile.TemporaryDirectory(prefix="straggler-mitigation-") as name:
        write_digits(Path(name), held_out)
        yield Path(name)


def run(what: Run, parent: Path, limit_s: float, entry: Entry = rank.main) -> Seen:
    """`entry` is what a rank does. When it ends, by itself or by an exception, no rank is running.

    Raises:
        RunError: a rank failed, or the time limit was reached. The ranks' standard error is then kept.
    """
    folder = Path(tempfile.mkdtemp(dir=parent))
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with _lighthouse(what) as address:
        context = start_processes(
            entry,
            args=(what, store.port, folder, address),
            nprocs=what.ranks,
            join=False,
            start_method="forkserver",
        )
        try:
            stopped = _watch(context, what, store, limit_s)
        except (ProcessException, TimeoutError) as error:
            _show_stacks(context)
            raise RunError(_failure(error, what, folder)) from error
        finally:
            for process in context.processes:
                process.kill()
                process.join()
    seen = _read(what, folder, stopped)
    shutil.rmtree(folder)
    return seen


@contextmanager
def _lighthouse(what: Run) -> Iterator[str]:
    if what.scheme != "torchft":
        yield ""
        return
    program = Path(sys.executable).with_name("torchft_lighthouse")
    if not program.exists():
        raise RunError("torchft is not installed: pip install torchft")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [str(program), "--bind", address, "--min_replicas", str(what.ranks)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://{address}"
    finally:
        server.terminate()
        server.wait()


def _watch(context: ProcessContext, what: Run, store: dist.Store, limit_s: float) -> tuple[float, float] | None:
    """Until all ranks have ended. Gives from when to when the victim was stopped."""
    last_s = time.monotonic() + limit_s
    frozen_s = WORKLOADS[what.workload].frozen_s
    stopped = None
    while not context.join(timeout=POLL_S, grace_period=GRACE_S):
        if frozen_s and stopped is None and store.check([FREEZE]):
            process, begun = int(store.get(FREEZE)), time.monotonic()
            os.kill(process, signal.SIGSTOP)
            time.sleep(frozen_s)
            os.kill(process, signal.SIGCONT)
            stopped = (begun, time.monotonic())
        if time.monotonic() > last_s:
            raise TimeoutError(f"the time limit of {limit_s:.0f} s was reached")
    return stopped


def _show_stacks(context: ProcessContext) -> None:
    for process in context.processes:
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGUSR1)
    time.sleep(1)


def _failure(error: Exception, what: Run, folder: Path) -> str:
    kept = Path(tempfile.mkdtemp(prefix=f"straggler-failed-{what.workload}-{what.scheme}-"))
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    said = [f"{what}: {str(error).strip().splitlines()[-1]}; all of standard error is in {kept}"]
    for number in range(what.ranks):
        said += [f"--- rank {number}", *(folder / f"rank-{number}.txt").read_text().splitlines()[-LAST_LINES:]]
    return "\n".join(said)


def _read(what: Run, folder: Path, stopped: tuple[float, float] | None) -> Seen:
    arrays = [np.load(folder / f"rank-{number}.npz") for number in range(what.ranks)]
    ends, late, hashes = (np.stack([found[name] for found in arrays]) for name in ("ends", "late", "hashes"))
    if stopped is not None:
        victim = what.world.victim
        late[victim, np.searchsorted(ends[victim], stopped[0])] += stopped[1] - stopped[0]
    told = [json.loads((folder / f"rank-{number}.json").read_text()) for number in range(what.ranks)]
    said = [line for number in range(what.ranks) for line in (folder / f"rank-{number}.txt").read_text().splitlines()]
    return Seen(ends, late, hashes, told, list(dict.fromkeys(line for line in said if line.startswith(SAYS))))
