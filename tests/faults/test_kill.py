"""SIGKILL of each rank in turn, inside a collective and between two; SIGSTOP for longer than the timeout."""

import pytest
from alike import BesideGloo, assert_alike

# Inside: the victim and one peer are in a collective that the third rank has not joined yet. Between: all compute.
KILLED = """
victim, inside = int(os.environ["VICTIM"]), os.environ["WHEN"] == "inside"
init(server=os.environ["SERVER"], timeout=timedelta(seconds=20))
for _ in range(20):
    dist.all_reduce(torch.ones(1000))

def die():
    tell(fault=time.monotonic())
    os.kill(os.getpid(), signal.SIGKILL)

if RANK == victim:
    threading.Timer(0.5, die).start()
if not inside or RANK == (victim + 1) % WORLD:
    time.sleep(1)
for _ in range(100):
    dist.all_reduce(torch.ones(1000))
"""

# One of each kind in every run; each rank in both ways takes longer.
CASES = [
    pytest.param(victim, when, "rank0" if victim == 0 else "launcher", marks=marks, id=f"rank-{victim}-{when}")
    for victim, when, marks in (
        (0, "inside", ()),
        (2, "between", ()),
        (1, "inside", pytest.mark.long),
        (2, "inside", pytest.mark.long),
        (0, "between", pytest.mark.long),
        (1, "between", pytest.mark.long),
    )
]


@pytest.mark.parametrize(("victim", "when", "server"), CASES)
def test_a_rank_that_is_killed_ends_the_others_as_on_gloo(
    victim: int, when: str, server: str, beside_gloo: BesideGloo
) -> None:
    ours, gloos = beside_gloo(KILLED, 3, VICTIM=str(victim), WHEN=when, SERVER=server)
    assert_alike(ours, gloos)
    for rank in ours.ranks:
        if rank.number == victim:
            assert rank.exit_code == -9, ours.text()
        else:
            assert rank.exit_code != 0, ours.text()
            assert rank.error == "RuntimeError", ours.text()
            assert "failed" in {op["state"] for op in ours.operations(rank.number)}


STOPPED = """
import subprocess
init(server="rank0", timeout=timedelta(seconds=3))
for _ in range(20):
    dist.all_reduce(torch.ones(8))
if RANK == int(os.environ["VICTIM"]):
    subprocess.Popen(["sh", "-c", f"sleep 6; kill -CONT {os.getpid()}"])
    tell(fault=time.monotonic())
    os.kill(os.getpid(), signal.SIGSTOP)
for _ in range(100):
    dist.all_reduce(torch.ones(8))
"""


@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_rank_that_is_stopped_for_longer_than_the_timeout_ends_all_as_on_gloo(
    victim: int, beside_gloo: BesideGloo
) -> None:
    """Rank 0 serves the store, which stands still with it."""
    ours, gloos = beside_gloo(STOPPED, VICTIM=str(victim))
    assert_alike(ours, gloos, lines=2)
    assert all(rank.exit_code != 0 and rank.error for rank in ours.ranks), ours.text()
