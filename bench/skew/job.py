"""The ranks as processes: started, given a time limit, and ended, whatever happens."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Generator, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessContext, ProcessException, ProcessRaisedException, start_processes

from . import rank_process
from .errors import InputError, JobError
from .plan import Plan
from .trial import Measured

POLL_S = 0.05
GRACE_S = 5.0  # from the request to end to the kill
LAST_LINES = 15  # of a failed rank's standard error


def check_devices(plan: Plan) -> None:
    """NCCL wants a device for each rank."""
    devices = gpus()
    if any(family.bare == "nccl" for family in plan.families) and devices < plan.ranks:
        raise InputError(f"--backends nccl needs a GPU for each of the {plan.ranks} ranks; there are {devices} here")


def gpus() -> int:
    return torch.cuda.device_count() if torch.cuda.is_available() and dist.is_nccl_available() else 0


def nccl_version() -> str | None:
    if not gpus():
        return None
    return ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]


def run(plan: Plan) -> Generator[Measured, None, None]:
    """Yields every cell when it is measured. When it ends, by itself or by an exception, no rank is running.

    Raises:
        JobError: a rank failed, or the time limit was reached.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory(prefix="straggler-bench-") as name:
        folder = Path(name)
        receiver, sender = multiprocessing.Pipe(duplex=False)
        context: ProcessContext = start_processes(  # type: ignore[no-untyped-call]
            rank_process.run, args=(plan, store.port, sender, folder), nprocs=plan.ranks, join=False
        )
        sender.close()
        try:
            yield from _watch(context, plan, receiver, folder)
        finally:
            _end(context)
            receiver.close()


def _watch(context: ProcessContext, plan: Plan, receiver: Connection, folder: Path) -> Iterator[Measured]:
    last_s = time.monotonic() + plan.time_limit_s
    running = True
    while running:
        try:
            running = not context.join(timeout=POLL_S, grace_period=GRACE_S)
        except ProcessException as error:
            raise JobError(failure(error, folder)) from error
        yield from _received(receiver)
        if running and time.monotonic() > last_s:
            raise JobError(f"the time limit of {plan.time_limit_s:g} s was reached, and the ranks were ended")


def _received(receiver: Connection) -> Iterator[Measured]:
    """What has arrived by now. The end of the pipe, also in the middle of a message, is the end of what there is."""
    try:
        while receiver.poll():
            yield receiver.recv()
    except EOFError:
        return


def failure(error: ProcessException, folder: Path) -> str:
    """One sentence, then what the failed rank said last."""
    rank = error.error_index
    raised = isinstance(error, ProcessRaisedException)
    reason = error.msg.strip().splitlines()[-1] if raised else error.msg
    said = (folder / f"rank-{rank}.txt").read_text(errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join([f"rank {rank} failed: {reason}", *said])


def _end(context: ProcessContext) -> None:
    for process in context.processes:
        if process.is_alive():
            process.terminate()
    last_s = time.monotonic() + GRACE_S
    for process in context.processes:
        process.join(max(0.0, last_s - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
