"""Ranks that leave early, late, or by SIGKILL: the others end as they do on gloo, and we add no noise.

`server` says where the store lives: with rank 0, as with plain `env://`, or with the launcher, as under torchrun.
"""

import re
from collections.abc import Callable

import pytest
from ranks import Job

# What torch writes where a server dies amid a call: a warning, the frames of a C++ stack, an empty line.
TORCHS_PAGE = re.compile(
    r"^\[rank\d+\]:\[W[^\n]* TCPStore\.cpp[^\n]*\n"
    r"(?:Exception raised from[^\n]*\n)?(?:frame #\d+:[^\n]*\n)+\n?",
    re.MULTILINE,
)

# Who leaves, when and how. The others have done their part by then and use no collective any more.
LEAVING = """
init(server={server!r}, timeout=timedelta(seconds=20))
for _ in range(20):
    dist.all_reduce(torch.ones(8))
if RANK != {leaver}:
    time.sleep(2.5)
elif {killed}:
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
tell(leaves=time.monotonic())
dist.destroy_process_group()
"""


def assert_leaves_quietly(job: Job, lines: int) -> None:
    """Every rank but a killed one ends with 0 within 5 s, and writes so many lines at most, the report aside."""
    for rank in job.ranks:
        if rank.exit_code == -9:
            continue
        assert rank.exit_code == 0, job.text()
        assert rank.ended - rank.told["leaves"] < 5, job.text()
        if rank.number == 0:
            assert len(rank.our_lines) <= lines, job.text()
        else:
            assert len(without_torchs_page(rank.stderr).splitlines()) <= lines, job.text()


def without_torchs_page(text: str) -> str:
    """Without the one page that a rank gets if the server dies amid a call of ours: see backend/c10d/store_watch.h."""
    return TORCHS_PAGE.sub("", text, count=1)


def test_the_one_page_of_torchs_and_nothing_else_is_left_out() -> None:
    page = (
        "[rank1]:[W1130 19:07:21.164175129 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=10): reset\n"
        "Exception raised from recvBytes at /pytorch/Utils.hpp:672 (most recent call first):\n"
        "frame #0: c10::Error::Error() + 0x9d (0x7f in libc10.so)\n"
        "frame #1: c10d::TCPStore::check() + 0x383 (0x7f in libtorch_cpu.so)\n\n"
    )
    ours = "straggler: rank 1: the store cannot be reached any more\n"
    assert without_torchs_page(page + ours) == ours
    assert without_torchs_page(page + page + ours) == page + ours
    assert without_torchs_page(ours) == ours


@pytest.mark.parametrize("server", ["rank0", "launcher"])
def test_rank_0_leaves_first(server: str, job: Callable[..., Job]) -> None:
    """CASES 5.01."""
    done = job(LEAVING.format(server=server, leaver=0, killed=False), 3)
    assert_leaves_quietly(done, 0)
    assert done.report["collectives"] == 60


def test_rank_0_leaves_last(job: Callable[..., Job]) -> None:
    """CASES 5.01."""
    code = LEAVING.format(server="rank0", leaver=0, killed=False).replace("RANK != 0", "RANK == 0")
    done = job(code, 3)
    assert_leaves_quietly(done, 0)
    assert done.report["collectives"] == 60
    assert not done.report["notes"]


@pytest.mark.parametrize("server", ["rank0", "launcher"])
def test_rank_0_is_killed(server: str, job: Callable[..., Job]) -> None:
    """CASES 5.01: one line of ours at most, and a page of torch's only where the server dies amid a call."""
    done = job(LEAVING.format(server=server, leaver=0, killed=True), 3)
    assert done.exit_codes[0] == -9
    assert_leaves_quietly(done, 1)


def test_another_rank_is_killed_and_the_report_says_that_its_end_is_missing(job: Callable[..., Job]) -> None:
    """CASES 5.01, 2.05."""
    done = job(LEAVING.format(server="launcher", leaver=2, killed=True), 3)
    assert done.exit_codes[2] == -9
    assert_leaves_quietly(done, 0)
    assert any("rank 2 has not told its end" in note for note in done.report["notes"])


@pytest.mark.parametrize(("victim", "server"), [(1, "launcher"), (0, "rank0")])
def test_a_rank_killed_amid_collectives_gives_the_others_the_inners_own_error(
    victim: int, server: str, beside_gloo: Callable[..., tuple[Job, Job]]
) -> None:
    """Exit codes and errors as on gloo, no rank more than 2 s later, and one line of ours at most."""
    code = """
        victim = int(os.environ["VICTIM"])
        init(server=os.environ["SERVER"], timeout=timedelta(seconds=10))
        for number in range(200):
            if RANK == victim and number == 50:
                os.kill(os.getpid(), signal.SIGKILL)
            work = dist.all_reduce(torch.ones(1000), async_op=number % 2 == 1)
            if work is not None:
                work.wait()
        """
    ours, gloos = beside_gloo(code, 3, VICTIM=str(victim), SERVER=server)
    both = f"{ours.text()}\n======== gloo\n{gloos.text()}"
    assert ours.exit_codes[victim] == -9
    for our, gloo in zip(ours.ranks, gloos.ranks, strict=True):
        assert (our.exit_code, our.error) == (gloo.exit_code, gloo.error), both
        assert our.ended - ours.ranks[victim].ended <= gloo.ended - gloos.ranks[victim].ended + 2, both
        if our.number != victim:
            assert our.exit_code != 0 and our.error == "RuntimeError", both
            assert len(our.our_lines) <= 1, both
            assert "failed" in {op["state"] for op in ours.operations(our.number)}
