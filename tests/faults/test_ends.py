"""Ends that nobody planned: an abort in the middle of a backward, an exit with threads that run."""

import signal
from dataclasses import replace

import pytest
from alike import BesideGloo, assert_alike
from ranks import Job

# A hook in the backward lets another thread abort: the group's backend, or, every other time, all that torch knows of.
ABORTED = """
import gc
outcomes = []
for repeat in range(int(os.environ["REPEATS"])):
    init(timeout=timedelta(seconds=5))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)))
    now, aborted = threading.Event(), threading.Event()

    def abort(backend=backend_of(), everything=repeat % 2 == 1):
        now.wait()
        dist.distributed_c10d._abort_process_group() if everything else backend.abort()
        aborted.set()

    thread = threading.Thread(target=abort)
    thread.start()
    model.module[1].weight.register_hook(lambda gradient: (now.set(), aborted.wait(5), None)[-1])
    try:
        model(torch.ones(4, 8)).sum().backward()
        outcomes.append("none")
    except Exception as error:
        outcomes.append(type(error).__name__)
    now.set()
    thread.join()
    if dist.is_initialized():
        dist.destroy_process_group()
    del model, abort, thread
    gc.collect()
tell(outcomes=outcomes)
"""


def test_an_abort_from_another_thread_amid_a_backward_ends_it_as_on_gloo(beside_gloo: BesideGloo) -> None:
    """CASES 1.47, twenty times in one process: the same outcome, and no signal."""
    ours, gloos = beside_gloo(ABORTED, seconds=90, REPEATS="20")
    assert_alike(ours, gloos, slower=20 * 0.5)  # twenty ends of a session
    assert ours.exit_codes == [0, 0], ours.text()
    for told, gloo in zip(ours.told, gloos.told, strict=True):
        assert told["outcomes"] == gloo["outcomes"]
        assert len(told["outcomes"]) == 20


# Work of rank 0 in two groups, which rank 1 never joins. On gloo an abort does not end it; then a group is made anew.
PENDING = """
init(timeout=timedelta(seconds=20))
groups = [dist.new_group() for _ in range(2)]
for group in groups:
    dist.all_reduce(torch.ones(2), group=group)
pending = [dist.all_reduce(torch.ones(2), group=group, async_op=True) for group in groups if RANK == 0]
begun, outcomes = time.monotonic(), []
dist.distributed_c10d._abort_process_group()
for work in pending:
    try:
        outcomes.append(work.wait(timedelta(seconds=0.5)))
    except RuntimeError as error:
        outcomes.append(str(error))
pending.clear()
tell(outcomes=outcomes, initialized=dist.is_initialized(), took=time.monotonic() - begun)
init(timeout=timedelta(seconds=20))
ones = torch.ones(2)
dist.all_reduce(ones)
tell(ones=ones.tolist())
dist.destroy_process_group()
"""


def test_an_abort_with_work_pending_in_two_groups_ends_as_on_gloo(beside_gloo: BesideGloo) -> None:
    """CASES 1.38: and a group can be made again."""
    ours, gloos = beside_gloo(PENDING)
    assert_alike(ours, gloos, lines=0)
    assert ours.exit_codes == [0, 0], ours.text()
    for told, gloo in zip(ours.told, gloos.told, strict=True):
        assert told["took"] < 10
        assert [told[what] for what in ("outcomes", "initialized")] == [
            gloo[what] for what in ("outcomes", "initialized")
        ]
        assert told["ones"] == gloo["ones"] == [2, 2]


# Threads that run at the end of the main thread: one computes, one is inside a collective that rank 1 never joins.
RUNNING = """
init(timeout=timedelta(seconds=3))
dist.all_reduce(torch.ones(4))

def compute():
    while True:
        sum(range(1000))

def wait():
    try:
        dist.all_reduce(torch.ones(4))
    except RuntimeError:
        pass

threads = [threading.Thread(target=compute, daemon=True)]
if RANK == 0:
    threads.append(threading.Thread(target=wait, daemon=DAEMON))
for thread in threads:
    thread.start()
time.sleep(0.5)
tell(fault=time.monotonic())
"""


@pytest.mark.parametrize("daemon", ["True", pytest.param("False", marks=pytest.mark.long)])
def test_an_exit_with_threads_that_run_is_that_of_gloo(daemon: str, beside_gloo: BesideGloo) -> None:
    ours, gloos = beside_gloo(RUNNING.replace("DAEMON", daemon))
    if daemon == "True":
        ours, gloos = without_chance(ours), without_chance(gloos)
    assert_alike(ours, gloos)


def without_chance(job: Job) -> Job:
    """Where a thread is in a collective that is not joined, the end may find Gloo's own threads at work, or not."""
    first = job.ranks[0]
    if first.exit_code == -signal.SIGABRT and "terminate called without an active exception" in first.stderr:
        first = replace(first, exit_code=0)
    return replace(job, ranks=[first, *job.ranks[1:]])
