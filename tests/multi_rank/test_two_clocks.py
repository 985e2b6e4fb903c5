"""Ranks on two clocks, as on two hosts: one is in a time namespace of its own, 10 s away."""

import shutil
import subprocess

import pytest
from ranks import Job, run_ranks

OFFSET = ("unshare", "--time", "--monotonic", "10", "--boottime", "10", "--fork")

# Steps of 20 ms at set times of the wall clock, which both share. Rank 1 is delayed from the 61st operation on.
STEPS = """
init()
start = torch.tensor(time.time() + 0.2, dtype=torch.float64)
dist.broadcast(start, 0)
for number in range(300):
    time.sleep(max(0, start.item() + 0.02 * number - time.time()))
    dist.all_reduce(torch.ones(16))
tell(clock=time.monotonic(), wall=time.time())
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def two_clocks(tmp_path_factory: pytest.TempPathFactory) -> Job:
    allowed = shutil.which("unshare") and subprocess.run([*OFFSET, "true"], capture_output=True).returncode == 0
    if not allowed:
        pytest.skip("no time namespace can be made here: run as root on Linux 5.6 or later, with util-linux")
    return run_ranks(
        tmp_path_factory.mktemp("two_clocks"),
        STEPS,
        2,
        before=lambda rank: OFFSET if rank == 1 else (),
        STRAGGLER_INJECT="rank=1,where=collective,ms=5,from=61",
    ).succeeded()


def test_the_clocks_are_told_apart(two_clocks: Job) -> None:
    told = two_clocks.told
    assert (told[1]["clock"] - told[1]["wall"]) - (told[0]["clock"] - told[0]["wall"]) == pytest.approx(10, abs=0.1)
    assert two_clocks.report["clocks"] == 2
    domains = {line["clock_domain"] for line in two_clocks.of_type("rank")}
    assert len(domains) == 2


def test_the_skew_is_shown_with_a_bound_that_contains_the_truth(two_clocks: Job) -> None:
    (skew,) = (row for row in two_clocks.report["skew"] if row["kind"] == "all_reduce")
    assert skew["operations"] > 50
    assert 0.001 < skew["bound_ms"] < 5
    # Sleeping until a set time is no more exact than this on a busy machine.
    assert skew["skew_p50_ms"] == pytest.approx(5, abs=skew["bound_ms"] + 1)
    late = two_clocks.report["ranks"][1]["lateness_p50_ms"]
    assert late == pytest.approx(5, abs=skew["bound_ms"] + 1)


def test_self_time_needs_no_common_clock(two_clocks: Job) -> None:
    """The delayed rank's own time is 5 ms longer, whatever its clock says, and it is named."""
    ranks = two_clocks.report["ranks"]
    assert ranks[1]["self_ms"] - ranks[0]["self_ms"] == pytest.approx(5, abs=1.5)
    assert two_clocks.report["verdict"]["ranks"] == [1]
