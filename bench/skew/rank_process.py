"""One rank: measures every cell of the plan, together with the others.

One operation goes as follows. All ranks agree on an instant a little ahead (one all_reduce of the largest proposal, on
a group that is not measured); each waits for it, and longer by its share of the arrival skew; then it stamps its
arrival, calls, and stamps the completion. Ranks leave a barrier at different times, and that would add to the arrival
pattern; an instant on a common clock does not.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Iterable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import torch.distributed as dist

from .operation import Operation
from .patterns import delays_ns
from .plan import Cell, Family, Plan, Subject, order
from .prctl import end_with_parent, tighten_timer
from .trial import Measured, Trial
from .window import wait_until

AGREEMENTS = 40  # tried, to learn how long one takes
LEAD_LIMITS_NS = (500_000, 20_000_000)
WARM_UP = 3  # operations of each subject before a size is measured
TRANSFER_TRIALS = 9  # that the transfer time is the median of
GROUP_TIMEOUT = timedelta(seconds=60)


def run(rank: int, plan: Plan, port: int, sender: Connection, folder: Path) -> None:
    """Entry of the process. Rank 0 sends what was measured, cell by cell; standard error goes to a file in `folder`."""
    _redirect_standard_error(folder / f"rank-{rank}.txt")
    if rank != 0:
        sender.close()  # so that the reader sees the end when rank 0 ends
    end_with_parent()
    tighten_timer()
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=GROUP_TIMEOUT)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=rank, world_size=plan.ranks, timeout=GROUP_TIMEOUT)
    try:
        for measured in _Rank(plan).measure():
            if rank == 0:
                sender.send(measured)
        dist.barrier()
    finally:
        dist.destroy_process_group()


class _Rank:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._ranks = range(plan.ranks)
        self._groups = {subject: _group(subject) for family in plan.families for subject in family.subjects}
        self._lead_ns = LEAD_LIMITS_NS[0]
        self._lead_ns = self._calibrated_lead_ns()

    def measure(self) -> Iterable[Measured]:
        gc.collect()
        gc.disable()  # a collection would be an arrival that nobody imposed
        for family, collective, size in self._plan.blocks():
            operation = Operation(collective, size, _device(family.bare))
            self._warm_up(family, operation)
            transfer_ns = self._transfer_ns(family, operation)
            for cell in self._plan.cells(family, collective, size):
                yield self._cell(cell, operation, transfer_ns)

    def _warm_up(self, family: Family, operation: Operation) -> None:
        for subject in family.subjects * WARM_UP:
            operation.prepare()
            operation.call(self._groups[subject])
        self._take_expected(family, operation)

    def _take_expected(self, family: Family, operation: Operation) -> None:
        operation.prepare()
        operation.call(self._groups[family.subjects[0]])
        operation.expect()

    def _transfer_ns(self, family: Family, operation: Operation) -> int:
        """The time that arrival skews are measured in. Equal on all ranks, as all have the stamps of all."""
        together = (0,) * len(self._ranks)
        own = [self._operate(operation, family.subjects[0], together) for _ in range(TRANSFER_TRIALS)]
        return round(statistics.median(trial.first_to_last_ns for trial in self._gather(own)))

    def _cell(self, cell: Cell, operation: Operation, transfer_ns: int) -> Measured:
        subjects = cell.family.subjects
        self._take_expected(cell.family, operation)
        ran: list[Subject] = []
        own: list[Trial] = []
        for round_number in range(self._plan.rounds):
            delays = delays_ns(cell.pattern, len(self._ranks), round(cell.skew * transfer_ns), round_number)
            for subject in order(subjects, round_number):
                ran.append(subject)
                own.append(self._operate(operation, subject, delays))
        trials: dict[Subject, list[Trial]] = {subject: [] for subject in subjects}
        for subject, trial in zip(ran, self._gather(own), strict=True):
            trials[subject].append(trial)
        return Measured(cell, transfer_ns, trials)

    def _operate(self, operation: Operation, subject: Subject, delays: tuple[int, ...]) -> Trial:
        """One operation, as this rank alone sees it: tuples of length 1."""
        group = self._groups[subject]
        operation.prepare()
        due = self._agreed_instant() + delays[dist.get_rank()]
        arrival = wait_until(due)
        operation.call(group)
        completion = time.monotonic_ns()
        return Trial((due,), (arrival,), (completion,), operation.matches())

    def _calibrated_lead_ns(self) -> int:
        """How far ahead an instant has to be for the last rank to hear of it in time: twice what is usual at worst."""
        late_ns = []
        for _ in range(AGREEMENTS):
            instant = self._agreed_instant()
            late_ns.append(time.monotonic_ns() - (instant - self._lead_ns))
        worst = torch.tensor(sorted(late_ns)[AGREEMENTS * 9 // 10])
        dist.all_reduce(worst, dist.ReduceOp.MAX)
        low, high = LEAD_LIMITS_NS
        return min(max(2 * int(worst), low), high)

    def _agreed_instant(self) -> int:
        proposal = torch.tensor(time.monotonic_ns() + self._lead_ns)
        dist.all_reduce(proposal, dist.ReduceOp.MAX)
        return int(proposal)

    def _gather(self, own: list[Trial]) -> list[Trial]:
        """The same operations, as all ranks saw them."""
        everybody: list[list[Trial]] = [[] for _ in self._ranks]
        dist.all_gather_object(everybody, own)
        return [
            Trial(
                due_ns=tuple(trial.due_ns[0] for trial in same),
                arrival_ns=tuple(trial.arrival_ns[0] for trial in same),
                completion_ns=tuple(trial.completion_ns[0] for trial in same),
                equal=all(trial.equal for trial in same),
            )
            for same in zip(*everybody, strict=True)
        ]


def _device(backend: str) -> torch.device:
    return torch.device("cuda", dist.get_rank()) if "nccl" in backend else torch.device("cpu")


def _group(subject: Subject) -> dist.ProcessGroup:
    device = _device(subject.backend)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    group = dist.new_group(backend=subject.backend, timeout=GROUP_TIMEOUT)
    assert isinstance(group, dist.ProcessGroup)
    return group


def _redirect_standard_error(path: Path) -> None:
    """What a rank says, the wrapped backend's own report included, is kept out of the bench's output."""
    with path.open("w") as file:
        os.dup2(file.fileno(), 2)
