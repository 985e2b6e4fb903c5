"""Ends that nobody planned: an abort in the middle of a backward, an exit with threads that run."""

import signal
from dataclasses import replace

import pytest
from alike import BesideGloo, assert_alike
from ranks import Job

# A hook in the backward lets another thread abort: the group's backend, or, every other time, all that torch knows of;
# the last time with work pending in two further groups.
ABORTED = """
import gc
outcomes = []
for repeat in range(int(os.environ["REPEATS"])):
    init(timeout=timedelta(seconds=5))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)))
    now, aborted = threading.Event(), threading.Event()
    others = [dist.new_group() for _ in range(2 if repeat + 1 == int(os.environ["REPEATS"]) else 0)]
    pending = [dist.all_reduce(torch.ones(2), group=group, async_op=True) for group in others if RANK == 0]

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
    for work in pending:
        try:
            work.wait(timedelta(seconds=0.1))  # on gloo, an abort ends no work
        except RuntimeError as error:
            outcomes.append(str(error)[:20])
    if dist.is_initialized():
        dist.destroy_process_group()
    del model, abort, thread, others, pending
    gc.collect()
tell(outcomes=outcomes)
"""


def test_an_abort_from_another_thread_amid_a_backward_ends_it_as_on_gloo(beside_gloo: BesideGloo) -> None:
    """CASES 1.38, 1.47, twenty times in one process: the same outcome, and no signal."""
    ours, gloos = beside_gloo(ABORTED, seconds=90, REPEATS="20")
    assert_alike(ours, gloos, slower=20 * 0.5)  # twenty ends of a session
    assert ours.exit_codes == [0, 0], ours.text()
    assert [told["outcomes"] for told in ours.told] == [gloo["outcomes"] for gloo in gloos.told]
    assert [len(told["outcomes"]) for told in ours.told] == [20 + 2, 20]


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
