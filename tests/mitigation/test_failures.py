"""What goes wrong around a late rank: timeouts, ranks that die, a store that is gone, ends, programs that differ.

Nobody hangs beyond the timeout of gloo, nobody dies of a signal, and whatever is raised is one clear error.
"""

import re
import textwrap
from collections.abc import Callable

import pytest
from own_store import STORE_OF_ITS_OWN
from ranks import Job

TIMEOUT = 6  # of the groups, seconds
SLACK = 6  # beyond it, for the end of a process on a busy machine

# What all scripts here begin with: a DDP training that is armed by step 20.
TRAINING = """
os.environ |= {"STRAGGLER_MITIGATE": os.environ.get("MODE", "carry"), "STRAGGLER_GRACE_MS": "5"}
import warnings
warnings.simplefilter("ignore")

def start(**options):
    init(timeout=timedelta(seconds=6), **options)
    return model()

def model():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 3))
    return torch.nn.parallel.DistributedDataParallel(layers, bucket_cap_mb=1e-5)

def step(ddp, seconds=0):
    time.sleep(seconds)
    ddp.zero_grad()
    ddp(torch.ones(2, 8)).sum().backward()

def ledger():
    import torch_straggler
    return torch_straggler.ledger()
"""


def assert_bounded(job: Job, seconds: float = TIMEOUT + SLACK) -> None:
    """Nobody but who was killed died of a signal; none ended later than the timeout after the fault."""
    faults = [told["fault"] for told in job.told if "fault" in told]
    for rank in job.ranks:
        assert rank.exit_code in (0, 1) or "killed" in rank.told, job.text()
        assert rank.ended - max(faults) <= seconds, job.text()


def test_a_rank_that_stalls_for_a_second_in_each_of_ten_steps_and_then_a_barrier_pass(job: Callable[..., Job]) -> None:
    """As with plain DDP, with a timeout of 6 s: the lead is bounded, since it is paid back in one wait."""
    code = """
        ddp = start()
        for number in range(60):
            step(ddp, 1.0 if RANK == 1 and 25 <= number < 35 else 0)
        dist.barrier()
        tell(filled=ledger().filled_by_proxy)
        dist.destroy_process_group()
        """
    done = job(TRAINING + plain(code), 4, seconds=80, STRAGGLER_STALENESS="64").succeeded()
    assert done.told[1]["filled"] > 0


@pytest.mark.parametrize(
    ("victim", "mode"),
    [
        (0, "carry"),
        pytest.param(2, "drop", marks=pytest.mark.long),
        pytest.param(2, "carry", marks=pytest.mark.long),
        pytest.param(0, "drop", marks=pytest.mark.long),
    ],
)
def test_a_rank_that_is_killed_while_others_wait_ends_them_within_the_timeout(
    victim: int, mode: str, job: Callable[..., Job]
) -> None:
    """Rank 0 is the coordinator. The victim is killed while its slots are filled by proxy, the others a lead ahead."""
    code = f"""
        ddp = start()
        for number in range(60):
            if RANK == {victim} and number == 40:
                threading.Timer(0.3, lambda: (tell(fault=time.monotonic(), killed=True),
                                              os.kill(os.getpid(), signal.SIGKILL))).start()
            step(ddp, 60 if RANK == {victim} and number == 40 else 0)
        """
    done = job(TRAINING + plain(code), 3, seconds=60, MODE=mode)
    assert_bounded(done)
    for rank in done.ranks:
        if rank.number != victim:
            assert rank.exit_code == 1 and rank.error == "RuntimeError", done.text()


@pytest.mark.long
def test_a_killed_coordinator_that_had_nothing_more_to_do_harms_nobody(job: Callable[..., Job]) -> None:
    """Rank 0 leaves the group's work, done by all; the others end with 0."""
    code = """
        ddp = start()
        for number in range(40):
            step(ddp, 0.1 if RANK == 1 and number % 5 == 0 and number > 20 else 0)
        dist.barrier()
        if RANK == 0:
            tell(fault=time.monotonic(), killed=True)
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1)
        """
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert [rank.exit_code for rank in done.ranks] == [-9, 0, 0], done.text()


def test_a_store_that_is_gone_ends_mitigation_with_one_line_and_training_goes_on(job: Callable[..., Job]) -> None:
    """The server of the store dies in mid-run, while a rank is late again and again. From then on all is exact."""
    code = """
        server, store = store_of_its_own()
        timeout = timedelta(seconds=6)
        dist.init_process_group(BACKEND, store=store, rank=RANK, world_size=WORLD, timeout=timeout)
        ddp = model()
        gradients = torch.zeros(8 * 8)
        for number in range(80):
            step(ddp, 0.08 if RANK == 1 and number > 20 and number % 4 == 0 else 0)
            gradients += ddp.module[0].weight.grad.reshape(-1)
            if number == 50 and RANK == 0:
                tell(fault=time.monotonic(), before=ledger().filled_by_proxy)
                os.kill(server, signal.SIGKILL)
        after = ledger()
        tell(gradients=gradients.tolist(), armed=after.armed, reason=after.reason, filled=after.filled_by_proxy)
        dist.destroy_process_group()
        """
    done = job(TRAINING + STORE_OF_ITS_OWN + plain(code), 3, seconds=60).succeeded()
    assert_bounded(done, 20)
    assert done.told[1]["filled"] > 0
    assert [told["gradients"] for told in done.told] == [done.told[0]["gradients"]] * 3
    assert [told["armed"] for told in done.told] == [False] * 3, done.told
    lines = [line for rank in done.ranks for line in rank.our_lines if line.startswith("straggler: mitigation ")]
    assert lines


@pytest.mark.parametrize("mode", ["carry", pytest.param("drop", marks=pytest.mark.long)])
def test_destroying_the_group_with_a_rank_behind_neither_hangs_nor_crashes(mode: str, job: Callable[..., Job]) -> None:
    """The others are done and destroy; the late rank still has steps to take, which are in its log."""
    code = """
        ddp = start()
        for number in range(40):
            step(ddp, 1.5 if RANK == 1 and number == 36 else 0)
        tell(fault=time.monotonic(), filled=ledger().filled_by_proxy, done=True)
        dist.destroy_process_group()
        """
    done = job(TRAINING + plain(code), 3, seconds=60, MODE=mode)
    assert_bounded(done)
    assert done.exit_codes == [0] * 3, done.text()
    assert done.told[1]["filled"] > 0


def test_forked_children_of_a_mitigated_job_have_no_ledger_and_end(job: Callable[..., Job]) -> None:
    """Workers of a DataLoader are such children; what their parent owes is not theirs."""
    code = """
        ddp = start()
        for number in range(40):
            step(ddp, 0.08 if RANK == 1 and number > 20 and number % 4 == 0 else 0)
            if number % 5 == 0:
                child = os.fork()
                if child == 0:
                    os._exit(0 if ledger() is None else 1)
                assert os.waitpid(child, 0)[1] == 0
        tell(fault=time.monotonic(), filled=ledger().filled_by_proxy, done=True)
        dist.destroy_process_group()
        """
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert_bounded(done)
    assert done.exit_codes == [0] * 3, done.text()
    assert done.told[1]["filled"] > 0


def test_a_rank_whose_gradients_are_dropped_too_often_says_so(job: Callable[..., Job]) -> None:
    """While the job runs, on that rank; and at the end in the report."""
    code = """
        ddp = start()
        for number in range(150):
            step(ddp, 0.1 if RANK == 1 and number > 20 and number % 10 == 0 else 0)
        tell(fault=time.monotonic(), filled=ledger().filled_by_proxy, done=True)
        dist.destroy_process_group()
        """
    done = job(TRAINING + plain(code), 3, seconds=60, MODE="drop")
    assert done.exit_codes == [0] * 3, done.text()
    assert done.told[1]["filled"] > 30
    said = [sum("of the gradients of rank" in line for line in rank.our_lines) for rank in done.ranks]
    assert said == [0, 1, 0], done.text()
    assert "ALARM: gradients of rank 1 were dropped" in done.text()


@pytest.mark.long
def test_exiting_without_destroy_and_with_a_rank_behind_neither_hangs_nor_crashes(job: Callable[..., Job]) -> None:
    code = """
        ddp = start()
        for number in range(40):
            step(ddp, 1.5 if RANK == 1 and number == 36 else 0)
        tell(fault=time.monotonic(), filled=ledger().filled_by_proxy, done=True)
        """
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert_bounded(done)
    assert done.exit_codes == [0] * 3, done.text()


@pytest.mark.long
def test_destroying_the_group_on_a_rank_that_is_behind_ends_within_the_timeout(job: Callable[..., Job]) -> None:
    """It has results that it never took. An exception that ends a late rank is the usual way there."""
    code = """
        ddp = start()
        for number in range(40):
            if RANK == 1 and number == 36:
                time.sleep(1)
                tell(fault=time.monotonic(), filled=ledger().filled_by_proxy)
                dist.destroy_process_group()
                sys.exit(0)
            step(ddp)
        """
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert_bounded(done)
    assert done.told[1]["filled"] > 0
    assert done.exit_codes[1] == 0, done.text()


# ---- Programs that differ --------------------------------------------------------------------------------------------

UNEVEN = """
        ddp = start()
        for number in range(40 if RANK == 1 else 43):
            step(ddp)
        tell(fault=time.monotonic(), begun=True)
        if RANK == 1:
            time.sleep(SECONDS)
        THEN
        dist.barrier()
        tell(passed=True)
        dist.destroy_process_group()
        """


@pytest.mark.parametrize("seconds", ["1", pytest.param("0", marks=pytest.mark.long)])
def test_uneven_batches_without_join_give_a_clear_error(seconds: str, job: Callable[..., Job]) -> None:
    """Rank 1 has three batches less and goes on to a barrier, at once or when its slots have been filled by proxy."""
    code = UNEVEN.replace("SECONDS", seconds).replace("THEN", "")
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert all("passed" not in told for told in done.told), done.text()
    assert done.exit_codes == [1] * 3, done.text()
    ends = [rank.ended for rank in done.ranks]
    assert max(ends) - min(told["fault"] for told in done.told if "fault" in told) < TIMEOUT + SLACK, done.text()
    if seconds == "1":
        (late,) = (rank for rank in done.ranks if rank.number == 1)
        assert re.search(r"straggler: .*(slot|results|logged|all_reduce)", late.stderr), done.text()


@pytest.mark.long
def test_a_rank_that_ends_early_gives_the_others_an_error_and_no_hang(job: Callable[..., Job]) -> None:
    """Rank 1 is done three batches before the others, and destroys the group."""
    code = """
        ddp = start()
        for number in range(40 if RANK == 1 else 43):
            step(ddp)
        tell(fault=time.monotonic())
        dist.destroy_process_group()
        """
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert_bounded(done)
    assert done.exit_codes[1] == 0, done.text()


def test_a_rank_that_dies_between_two_buckets_leaves_nobody_with_that_step(job: Callable[..., Job]) -> None:
    """Of four buckets, two are reduced: what a step has come to is known from all of its own operations."""
    code = """
        def die(gradient):
            tell(fault=time.monotonic(), killed=True)
            os.kill(os.getpid(), signal.SIGKILL)

        ddp = start()
        for number in range(60):
            if RANK == 1 and number == 40:
                ddp.module[0].weight.register_hook(die)
            step(ddp, 0.1 if RANK == 1 and number in (30, 35) else 0)
            tell(steps=number + 1)
        """
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert_bounded(done)
    assert [told["steps"] for told in done.told] == [40] * 3, done.text()
    assert [rank.error for rank in done.ranks] == ["RuntimeError", "", "RuntimeError"], done.text()


@pytest.mark.long
def test_a_module_that_runs_on_one_rank_alone_gives_an_error_and_no_hang(job: Callable[..., Job]) -> None:
    """Rank 0 alone makes an all_gather in a forward: ranks make different collectives from then on."""
    code = """
        ddp = start()
        tell(fault=time.monotonic())
        for number in range(60):
            if RANK == 0 and number == 40:
                dist.all_gather([torch.zeros(4) for _ in range(WORLD)], torch.ones(4))
            step(ddp, 0.1 if RANK == 1 and number in (30, 35) else 0)
        """
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert_bounded(done, 3 * TIMEOUT)
    assert done.exit_codes == [1] * 3, done.text()


@pytest.mark.long
def test_a_rank_that_raises_in_backward_ends_the_others_within_the_timeout(job: Callable[..., Job]) -> None:
    code = """
        def fail(gradient):
            tell(fault=time.monotonic())
            raise MemoryError("of rank 1")

        ddp = start()
        for number in range(60):
            if RANK == 1 and number == 40:
                ddp.module[0].weight.register_hook(fail)
            step(ddp, 0.1 if RANK == 1 and number in (30, 35, 39) else 0)
        """
    done = job(TRAINING + plain(code), 3, seconds=60)
    assert_bounded(done)
    assert done.exit_codes == [1] * 3, done.text()


def plain(code: str) -> str:
    """Without the indentation of a test's text."""
    return textwrap.dedent(code)
