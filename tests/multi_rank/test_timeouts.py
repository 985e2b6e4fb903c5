"""Timeouts and asynchrony are the inner backend's."""

import pytest
from ranks import Job, run_beside_gloo

# Rank 1 stays away from each of four calls, each in a group of its own, since a timeout ends a group on Gloo.
AWAY = """
init(timeout=timedelta(seconds=300))
groups = [dist.new_group(timeout=timedelta(seconds=300)) for _ in range(4)]
warm = [dist.all_reduce(torch.ones(2), group=group) for group in groups]
outcome = {}

def attempt(name, call):
    begun = time.monotonic()
    try:
        call()
        raised = None
    except Exception as error:
        raised = [type(error).__name__, "rank 1" in str(error).lower()]
    outcome[name] = [raised, time.monotonic() - begun]

def wait(group):
    dist.all_reduce(torch.ones(2), group=group, async_op=True).wait(timedelta(seconds=1))

dist.barrier()
if RANK == 0:
    begun = time.monotonic()
    work = dist.all_reduce(torch.ones(2), async_op=True)  # rank 1 comes a second later
    outcome["asynchronous"] = [None, time.monotonic() - begun]
    work.wait()
    dist.set_timeout(timedelta(seconds=2), groups[0])
    attempt("set_timeout", lambda: dist.all_reduce(torch.ones(2), group=groups[0]))
    attempt("monitored_barrier", lambda: dist.monitored_barrier(groups[1], timeout=timedelta(seconds=1)))
    attempt("wait", lambda: wait(groups[2]))
    attempt("receive", lambda: dist.irecv(torch.ones(2), 1, groups[3]).wait(timedelta(seconds=1)))
else:
    time.sleep(1)
    dist.all_reduce(torch.ones(2))
    time.sleep(8)
tell(outcome=outcome)
if BACKEND != "gloo":
    from torch_straggler import _C
    _C.finish()
os._exit(0)  # groups with an operation that cannot end are not taken down
"""


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Job]:
    ours, gloos = run_beside_gloo(tmp_path_factory.mktemp("away"), AWAY)
    return ours.succeeded(), gloos.succeeded()


def test_what_is_not_joined_raises_what_gloo_raises(away: tuple[Job, Job]) -> None:
    """CASES 1.23, 1.24: set_timeout, the timeout of one wait, a receive, and monitored_barrier, which names rank 1."""
    ours, gloos = (job.told[0]["outcome"] for job in away)
    assert {name: raised for name, (raised, _) in ours.items()} == {name: raised for name, (raised, _) in gloos.items()}
    assert ours["monitored_barrier"][0] == ["RuntimeError", True]
    for name in ("set_timeout", "monitored_barrier", "wait", "receive"):
        raised, seconds = ours[name]
        assert raised is not None, name
        assert seconds < 5, name


def test_an_asynchronous_call_returns_at_once(away: tuple[Job, Job]) -> None:
    """CASES 1.34: the peer comes a second later."""
    assert away[0].told[0]["outcome"]["asynchronous"][1] < 0.02


def test_an_operation_that_timed_out_is_recorded_as_failed(away: tuple[Job, Job]) -> None:
    states = [(op["kind"], op["state"]) for op in away[0].operations(0)]
    assert states[-4:] == [
        ("all_reduce", "failed"),  # by set_timeout
        ("barrier", "failed"),
        ("all_reduce", "unknown"),  # only the wait timed out: the operation itself is still open
        ("recv", "unknown"),
    ]
