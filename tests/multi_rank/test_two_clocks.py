"""Ranks on two clocks, as on two hosts: rank 1 is in a time namespace of its own, 10 s ahead, and its clock runs faster
by 100 ppm. So the truth is known at every moment, and held against what is told of each window.
"""

import json
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from ranks import Job, read_lines, run_ranks

from torch_straggler import _C

AHEAD_NS = 10 * 10**9
AHEAD = ("unshare", "--time", "--monotonic", "10", "--boottime", "10", "--fork")
PARTS = 10_000  # the clock gains one in so many

# Steps of 20 ms at set times of the wall clock, which both share. One rank is delayed from the 61st operation on.
STEPS = """
init()
start = torch.tensor(time.time() + 0.2, dtype=torch.float64)
dist.broadcast(start, 0)
for number in range(500):
    time.sleep(max(0, start.item() + 0.02 * number - time.time()))
    dist.all_reduce(torch.ones(16))
tell(clock=time.monotonic(), wall=time.time())
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class TwoClocks:
    """A job, its late rank, and since when rank 1's clock runs fast (its own reading)."""

    job: Job
    late: int
    since_ns: int

    def truth_ms(self, at_ns: int) -> float:
        """Rank 0's clock less rank 1's, when that reads `at_ns`."""
        gained_ns = (at_ns - self.since_ns) / (PARTS + 1)
        return (-AHEAD_NS - gained_ns) / 1e6

    def windows(self) -> list[dict[str, Any]]:
        """The row of rank 1's clock in the report after each of its windows, as a replay tells it."""
        lines = read_lines(self.job.records / "job.jsonl")
        replay = _C.Replay(lines[0])
        rows = []
        for line in lines[1:]:
            if replay.line(line) and line["type"] == "window" and line["rank"] == 1:
                rows += json.loads(replay.report_json())["clock_offsets"]
        return rows


@pytest.fixture(scope="module", params=[0, 1], ids=["rank 0 is late", "rank 1 is late"])
def two_clocks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> TwoClocks:
    allowed = shutil.which("unshare") and subprocess.run([*AHEAD, "true"], capture_output=True).returncode == 0
    if not allowed:
        pytest.skip("no time namespace can be made here: run as root on Linux 5.6 or later, with util-linux")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler to make a clock fast with: apt-get install gcc")
    folder = tmp_path_factory.mktemp("two_clocks")
    library = folder / "fast_clock.so"
    source = Path(__file__).with_name("fast_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)], check=True)
    since_ns = time.monotonic_ns() + AHEAD_NS
    fast = ("env", f"LD_PRELOAD={library}", f"FAST_SINCE_NS={since_ns}")
    job = run_ranks(
        folder,
        STEPS,
        2,
        before=lambda rank: (*AHEAD, *fast) if rank == 1 else (),
        STRAGGLER_INJECT=f"rank={request.param},where=collective,ms=5,from=61",
    )
    return TwoClocks(job.succeeded(), request.param, since_ns)


def test_the_clocks_are_told_apart(two_clocks: TwoClocks) -> None:
    told = two_clocks.job.told
    apart = (told[1]["clock"] - told[1]["wall"]) - (told[0]["clock"] - told[0]["wall"])
    assert apart == pytest.approx(10, abs=0.1)
    assert two_clocks.job.report["clocks"] == 2
    assert [row["ranks"] for row in two_clocks.job.report["clock_offsets"]] == [[1]]
    domains = {line["clock_domain"] for line in two_clocks.job.of_type("rank")}
    assert len(domains) == 2


def test_the_interval_contains_the_truth_in_every_window(two_clocks: TwoClocks) -> None:
    rows = two_clocks.windows()
    assert len(rows) >= 30, "steps are counted once their period is believed"
    for row in rows[1:]:
        assert abs(row["offset_ms"] - two_clocks.truth_ms(row["at_ns"])) <= row["offset_bound_ms"]
    drifts = [row for row in rows if row["drift_ppm"] is not None]
    assert len(drifts) >= 15
    true_ppm = -1e6 / (PARTS + 1)
    assert all(abs(row["drift_ppm"] - true_ppm) <= row["drift_bound_ppm"] for row in drifts)
    assert not any(row["leaps"] for row in rows)


def test_stamps_over_the_store_bound_the_side_that_the_traffic_leaves_loose(two_clocks: TwoClocks) -> None:
    """One rank comes 5 ms before the other each time: the traffic alone would leave 2.5 ms."""
    assert len(two_clocks.job.of_type("clock")) >= 3
    assert median(row["offset_bound_ms"] for row in two_clocks.windows()[10:]) < 2.4


def test_the_skew_is_shown_with_a_bound_that_contains_the_truth(two_clocks: TwoClocks) -> None:
    (skew,) = (row for row in two_clocks.job.report["skew"] if row["kind"] == "all_reduce")
    assert skew["operations"] > 50
    assert 0.001 < skew["bound_ms"] < 10
    # Sleeping until a set time is no more exact than this on a busy machine.
    assert skew["skew_p50_ms"] == pytest.approx(5, abs=skew["bound_ms"] + 1)
    late = two_clocks.job.report["ranks"][two_clocks.late]["lateness_p50_ms"]
    assert late == pytest.approx(5, abs=skew["bound_ms"] + 1)


def test_self_time_needs_no_common_clock(two_clocks: TwoClocks) -> None:
    """The delayed rank's own time is 5 ms longer, whatever its clock says, and it is named."""
    ranks = two_clocks.job.report["ranks"]
    late, other = ranks[two_clocks.late], ranks[1 - two_clocks.late]
    assert late["self_ms"] - other["self_ms"] == pytest.approx(5, abs=1.5)
    assert two_clocks.job.report["verdict"]["ranks"] == [two_clocks.late]
