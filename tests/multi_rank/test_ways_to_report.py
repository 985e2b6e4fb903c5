"""One report, told in four ways: on standard error, in job.jsonl, by `straggler report`, in the process."""

import re
from pathlib import Path

import pytest
from ranks import Job, run_command, run_ranks

from torch_straggler.report import JobReport

# Rank 1 is slow; every second operation of a kind of its own finds it 50 ms late.
TRAINED = """
import dataclasses
import torch_straggler

init()
tensor = torch.ones(4 << 20)  # 16 MB
for number in range(60):
    dist.barrier()
    if RANK == 1 and number % 2 == 1:
        time.sleep(0.05)
    dist.all_reduce(tensor.fill_(1))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 16))
for _ in range(120):
    time.sleep(0.014 if RANK == 1 else 0.006)
    model(torch.ones(4, 16)).sum().backward()

def seen():
    return [dist.group.WORLD._get_sequence_number_for_group(), backend_of().inner._get_sequence_number_for_group()]
before = seen()
begun = time.monotonic()
running = torch_straggler.report()
tell(seconds=time.monotonic() - begun, added=[b - a for a, b in zip(before, seen())])
tell(running=None if running is None else running.collectives)
dist.destroy_process_group()
ended = torch_straggler.report()
tell(ended=None if ended is None else dataclasses.asdict(ended))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return run_ranks(tmp_path_factory.mktemp("trained"), TRAINED, 2).succeeded()


def test_the_command_prints_what_the_job_printed(trained: Job, tmp_path: Path) -> None:
    said = trained.ranks[0].stderr
    done = run_command(tmp_path, "straggler", "report", str(trained.records))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == said[said.rindex("STRAGGLER rank 1") :].strip()
    as_json = run_command(tmp_path, "straggler", "report", str(trained.records), "--json")
    assert JobReport.from_json(as_json.stdout) == JobReport.from_json(last_report(trained))


def last_report(job: Job) -> str:
    lines = (job.records / "job.jsonl").read_text().splitlines()
    return [line for line in lines if '"type":"report"' in line][-1]


def test_the_report_of_the_process_is_the_record(trained: Job) -> None:
    import dataclasses
    import json

    record = dataclasses.asdict(JobReport.from_json(last_report(trained)))
    assert trained.told[0]["ended"] == json.loads(json.dumps(record))
    assert 0 < trained.told[0]["running"] <= trained.report["collectives"]


def test_every_other_rank_has_the_brief_report(trained: Job) -> None:
    brief = trained.told[1]["ended"]
    assert brief["notes"][0].startswith("this is the brief report")
    assert (brief["world_size"], brief["ranks_reported"]) == (2, 2)
    assert 0 < trained.told[1]["running"] <= brief["collectives"] <= trained.report["collectives"]
    assert [row["rank"] for row in brief["ranks"]] == list(brief["verdict"]["ranks"])
    assert brief["skew"] == []


def test_asking_for_the_report_adds_no_collective(trained: Job) -> None:
    """CASES 2.02."""
    for told in trained.told:
        assert told["added"] == [0, 0]
        assert told["seconds"] < 0.5


def test_the_table_names_the_rank_first_and_says_what_it_saw(trained: Job) -> None:
    said = trained.ranks[0].stderr.splitlines()
    assert said[0].startswith("straggler: armed: 2 of 2 ranks seen on 1 host")
    named = r"STRAGGLER rank 1 \(.+\) cause=\w+ \+\d+\.\d ms/step \(\d+ % of the step\) since step \d+"
    assert said[1].startswith("straggler: armed: rule self_time")
    assert re.match(named, said[2])
    counted = sum(not op["is_p2p"] for rank in range(2) for op in trained.operations(rank))
    assert any(f"{counted} collectives seen, 0 records dropped" in line for line in said)


def test_waiting_for_a_peer_is_not_taken_for_moving_bytes(trained: Job) -> None:
    """CASES 2.25: with 50 ms of skew, first arrival to completion grows, last arrival to completion does not."""
    operations = [[op for op in trained.operations(rank) if op["bytes"] == 16 << 20] for rank in range(2)]
    split: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for number, pair in enumerate(zip(*operations, strict=True)):
        first, last = sorted(op["arrival_ns"] for op in pair)
        completed = max(op["completed_ns"] for op in pair)
        split[number % 2 == 1].append(((last - first) / 1e6, (completed - last) / 1e6))

    def quartile(late: bool, part: int) -> float:  # the lower: what other work on the machine adds is no part of it
        return sorted(times[part] for times in split[late])[len(split[late]) // 4]

    assert quartile(True, 0) == pytest.approx(50, abs=3)
    assert quartile(False, 0) < 3
    assert quartile(True, 1) == pytest.approx(quartile(False, 1), rel=0.2)
    largest = {row["kind"]: row["skew_max_ms"] for row in trained.report["skew"]}
    assert 50 <= largest["all_reduce"] < 65 and largest["barrier"] < 50
