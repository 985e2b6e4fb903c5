"""The right rank is named and nobody else: whole jobs under `straggler run --inject`, in which a script says `gloo`.

One job runs several sessions, each with its own report; the rules say in which of them what is delayed.
"""

from pathlib import Path
from typing import Any

import pytest
from ranks import MANY_RANKS, SLEEPING_LAYER, read_lines, run_command

RANKS = 4
STEPS = 150

# Steps of 25 ms, most of it sleep. Each session on its own part of the launcher's store.
SESSIONS = (
    """
from torch.utils.data import DataLoader
"""
    + SLEEPING_LAYER
    + """
for session in range(int(sys.argv[1])):
    init("gloo", timeout=timedelta(seconds=30))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(Layer(), torch.nn.Linear(32, 8)))
    for batch in DataLoader([torch.ones(32)] * 4 * int(sys.argv[2]), batch_size=4):
        model(batch).square().mean().backward()
    dist.destroy_process_group()
"""
)

# The name of a session, its rules, and who has to be named. `of` becomes the session's steps.
WANTED: dict[str, tuple[str, list[int]]] = {
    "clean": ("", []),
    "8 ms in the backward of rank 2": ("rank=2,where=backward,ms=8,of", [2]),
    "8 ms in the input of rank 0": ("rank=0,where=input,ms=8,of", [0]),
    "8 ms, another rank each step": ("rank=0,rotate=true,where=forward,ms=8,of", []),
    "rank 0 is late by 200 ms every 20 steps": ("rank=0,where=input,ms=200,every=20,of", []),
    "that, and 8 ms in the backward of rank 3": (
        "rank=0,where=input,ms=200,every=20,of;rank=3,where=backward,ms=8,of",
        [3],
    ),
}


def straggler_run(folder: Path, script: str, ranks: int, rules: list[str], *arguments: str) -> list[dict[str, Any]]:
    """The records of job.jsonl after the job."""
    (folder / "script.py").write_text(MANY_RANKS + script)
    inject = [word for rule in rules for word in ("--inject", rule)]
    options = ["run", "--standalone", f"--nproc-per-node={ranks}", *inject]
    records = folder / "records"
    done = run_command(folder, "straggler", *options, "script.py", *arguments, STRAGGLER_DIR=str(records))
    assert done.returncode == 0, done.stderr
    return read_lines(records / "job.jsonl")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The report of each session, by its name."""
    rules = []
    for number, (text, _) in enumerate(WANTED.values()):
        steps = f"from={STEPS * number + 8},to={STEPS * (number + 1) - 1}"
        rules += [rule.replace("of", steps) for rule in text.split(";") if rule]
    lines = straggler_run(tmp_path_factory.mktemp("naming"), SESSIONS, RANKS, rules, str(len(WANTED)), str(STEPS))
    found = [line for line in lines if line["type"] == "report"]
    return dict(zip(WANTED, found, strict=True))


@pytest.mark.parametrize("session", WANTED)
def test_who_is_slow_is_named_and_nobody_else(session: str, reports: dict[str, dict[str, Any]]) -> None:
    """CASES 2.01, 2.03, 2.26: DDP makes every rank's step equally long, and the victims wait."""
    report = reports[session]
    ranks = WANTED[session][1]
    assert report["verdict"]["ranks"] == ranks, report["verdict"]
    quiet = "imbalance" if "rotate" in WANTED[session][0] else "none"
    assert report["verdict"]["kind"] == ("straggler" if ranks else quiet)
    named = {rank for verdict in report["history"] if verdict["kind"] == "straggler" for rank in verdict["ranks"]}
    assert named == set(ranks), "while the job ran"
    assert report["steps_found_by"] == "graph_task"
    assert report["steps"] >= STEPS - 20
    assert (report["ranks_reported"], report["records_dropped"]) == (RANKS, 0)
    if ranks:
        assert report["verdict"]["excess_ms"] == pytest.approx(8, abs=2)


def test_the_excess_is_the_same_whichever_rank_is_slow(reports: dict[str, dict[str, Any]]) -> None:
    """CASES 2.01: rank 0, which reports, is measured as the others are."""
    ours = reports["8 ms in the input of rank 0"]["verdict"]["excess_ms"]
    others = reports["8 ms in the backward of rank 2"]["verdict"]["excess_ms"]
    assert ours == pytest.approx(others, abs=1.5)


# ---- Lateness --------------------------------------------------------------------------------------------------------

# Operations begin at set times of the wall clock, which the ranks share: so the delay is all that makes one late. Two
# sessions: the first, the control, ends before the delays begin; most operations of the second are delayed.
SCHEDULED = """
for operations in (60, 360):
    init("gloo")
    start = torch.tensor(time.time() + 0.2, dtype=torch.float64)
    dist.broadcast(start, 0)
    for number in range(operations):
        time.sleep(max(0, start.item() + 0.01 * number - time.time()))
        dist.all_reduce(torch.ones(16))
    dist.destroy_process_group()
"""


def test_5_ms_before_a_collective_read_5_ms(tmp_path: Path) -> None:
    """Within the bound, and what the control without a delay shows of the machine's own."""
    lines = straggler_run(tmp_path, SCHEDULED, 2, ["rank=1,where=collective,ms=5,from=61"])
    control, delayed = (line for line in lines if line["type"] == "report")
    noise, skew = ({row["kind"]: row for row in report["skew"]}["all_reduce"] for report in (control, delayed))
    assert skew["bound_ms"] <= 0.001  # one clock
    within = noise["skew_p95_ms"] + skew["bound_ms"]
    assert within < 2.5, "the machine is too busy for this to show anything"
    assert skew["skew_p50_ms"] == pytest.approx(5, abs=within)
    assert delayed["ranks"][1]["lateness_p50_ms"] == pytest.approx(5, abs=within)
    assert delayed["ranks"][0]["lateness_p50_ms"] <= within
