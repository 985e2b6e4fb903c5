"""Verdicts while the job runs: who is named, on which ranks it is known, when it clears, what a silent rank changes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ranks import SLEEPING_LAYER, Job, run_ranks

# Steps of 25 ms, most of it sleep; `late(step)` gives the milliseconds by which this rank is late in a step, and
# `before(step)` is called at its beginning.
TRAIN = (
    """
import torch_straggler
"""
    + SLEEPING_LAYER
    + """
def train(steps, late=lambda step: 0, before=lambda step: None):
    init(timeout=timedelta(seconds=30))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(Layer(), torch.nn.Linear(32, 8)))
    for step in range(steps):
        before(step)
        time.sleep(late(step) / 1e3)
        model(torch.ones(4, 32)).square().mean().backward()
    dist.destroy_process_group()

def told_now():
    report = torch_straggler.report()
    return None if report is None else [report.verdict.kind, list(report.verdict.ranks), report.verdict.since_step]
"""
)

# Rank 1 is late from step 20 to 99, rank 3 from 200 to 279; looked at while each is late, and in between.
MOVING = """
seen = {}
def look(step):
    if step in (95, 195, 275):
        seen[step] = told_now()

late_steps = {1: range(20, 100), 3: range(200, 280)}.get(RANK, range(0))
train(330, lambda step: 10 if step in late_steps else 0, look)
tell(seen=seen)
"""


@pytest.fixture(scope="module")
def moving(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return run_ranks(tmp_path_factory.mktemp("live"), TRAIN + MOVING, 4).succeeded()


def verdicts(job: Job) -> list[dict[str, Any]]:
    return job.of_type("verdict")


def test_a_culprit_that_moves_is_named_in_turn_and_cleared_in_between(moving: Job) -> None:
    told = [(verdict["kind"], verdict["ranks"]) for verdict in verdicts(moving)]
    assert told == [("straggler", [1]), ("cleared", [1]), ("straggler", [3]), ("cleared", [3])], told
    first, cleared, second, _ = verdicts(moving)
    assert first["since_step"] == pytest.approx(20, abs=2)
    assert second["since_step"] == pytest.approx(200, abs=2)
    assert first["excess_ms"] == pytest.approx(10, abs=3)
    assert first["step"] <= 20 + 30, "three windows"
    assert cleared["step"] <= 99 + 50, "five windows"


@pytest.mark.parametrize("rank", range(4))
def test_every_rank_knows_the_verdict_in_force(moving: Job, rank: int) -> None:
    seen = moving.told[rank]["seen"]
    assert seen["95"][:2] == ["straggler", [1]]
    assert seen["195"][:2] == ["cleared", [1]]
    assert seen["275"][:2] == ["straggler", [3]]


def test_lines_come_out_when_something_changes_and_never_for_what_lasts(moving: Job) -> None:
    """One line a verdict, in order, and the report at the end begins with the verdict in force."""
    starts = ("STRAGGLER", "CLEARED", "NO ", "IMBALANCE", "NETWORK", "JOB WIDE")
    lines = [line for line in moving.ranks[0].stderr.splitlines() if line.startswith(starts)]
    assert [line.split(" (")[0] for line in lines[:4]] == [
        "STRAGGLER rank 1",
        "CLEARED rank 1",
        "STRAGGLER rank 3",
        "CLEARED rank 3",
    ]
    assert len(lines) == 5, "the four and the report's first"
    form = r"STRAGGLER rank 1 \(\S+\) cause=\w+ \+\d+\.\d ms/step \(\d+ % of the step\) since step \d+$"
    assert re.match(form, lines[0]), lines[0]
    assert all(rank.stdout == "" or rank.stdout.startswith("{") for rank in moving.ranks), "nothing of ours on stdout"


def test_windows_and_verdicts_are_in_the_records(moving: Job) -> None:
    assert len(moving.of_type("window")) >= 4 * 20
    report = moving.report
    assert [verdict["kind"] for verdict in report["history"]] == ["straggler", "cleared", "straggler", "cleared"]
    assert report["windows_compared"] >= 32
    assert (report["windows_incomplete"], report["windows_late"]) == (0, 0)


# ---- A rank that stops reporting -------------------------------------------------------------------------------------

# The connection that rank 2's monitor has to the store is the last that was made to the store's port.
SILENCED = """
import socket
def connections():
    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            with socket.socket(fileno=os.dup(fd)) as s:
                if s.getpeername()[1] == int(os.environ["MASTER_PORT"]):
                    found.append(fd)
        except OSError:
            pass
    return sorted(found)

before_init = connections()
def silence(step):
    if RANK == 2 and step == 60:
        monitor = max(set(connections()) - set(before_init))
        with socket.socket(fileno=os.dup(monitor)) as s:
            s.shutdown(socket.SHUT_RDWR)

train(240, before=silence)
"""


def test_a_rank_that_stops_reporting_is_missing_and_nobody_is_flagged(job: Callable[..., Job]) -> None:
    """CASES 2.05: its monitor loses the store, and training goes on."""
    done = job(TRAIN + SILENCED, ranks=4).succeeded()
    told = verdicts(done)
    assert [verdict["kind"] for verdict in told] == ["abstain"], told
    assert all(verdict["ranks"] == [] for verdict in told)
    assert "incomplete data: nothing was heard of rank 2" in told[0]["reason"]
    assert done.report["verdict"]["kind"] == "abstain"
    assert done.report["windows_incomplete"] > 0
    assert len(done.ranks[2].our_lines) == 1, "the rank itself says once that the store is gone"


# ---- Rules -----------------------------------------------------------------------------------------------------------


def test_a_rule_that_cannot_fire_says_so_at_the_start(job: Callable[..., Job]) -> None:
    """Twice the mean of two ranks, one of them part of it."""
    done = job(TRAIN + "train(100, lambda step: 60 if RANK == 1 else 0)", STRAGGLER_RULE="mean_multiple").succeeded()
    assert "rule mean_multiple with multiplier 2.00 cannot name anybody with 2 ranks" in done.ranks[0].stderr
    assert done.report["verdict"]["kind"] != "straggler"


def test_a_rule_of_thumb_names_from_its_own_smallest_excess_on(job: Callable[..., Job]) -> None:
    code = TRAIN + "train(80, lambda step: (0, 0, 60)[RANK])"
    settings = {"STRAGGLER_RULE": "median", "STRAGGLER_MULTIPLIER": "1.5"}
    done = job(code, ranks=3, **settings).succeeded()
    assert "the smallest excess that it can see is 50 % more own time than the others" in done.ranks[0].stderr
    assert (done.report["verdict"]["rule"], done.report["verdict"]["ranks"]) == ("median", [2])


def test_all_ranks_slower_is_job_wide(tmp_path: Path) -> None:
    done = run_ranks(tmp_path, TRAIN + "train(220, lambda step: 10 if step >= 120 else 0)", 2).succeeded()
    told = verdicts(done)
    assert [verdict["kind"] for verdict in told] == ["job_wide"], told
    assert told[0]["since_step"] == pytest.approx(120, abs=10)
