"""The participation log says how each result came about: in NumPy, on Gloo itself, and when another run is forced."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from closed_form import brought
from participation import Participation
from program_runs import Outcomes
from program_table import FLOATS, FORCED, PROGRAMS
from programs import Program
from python_process import environment
from ranks import Job

HERE = Path(__file__).parent
pytestmark = pytest.mark.timeout(420)  # the first test waits for all programs
LOGGED = [
    pytest.param(program, id=program.name)
    for program in PROGRAMS
    if program.ddp
    and not program.stands_down
    and not program.scaler
    and program.ranks != 3
    and program.forward in ("plain", "reentrant", "not reentrant")  # of other collectives, backwards have none
]


@pytest.mark.parametrize("program", LOGGED)
def test_each_result_is_the_sum_that_the_log_says(program: Program, outcomes: Outcomes) -> None:
    """Of each bucket and step; in drop, that of the participants times W over their number."""
    seen = outcomes.of(program)
    log = Participation(program, outcomes.records[program.name])
    assert [(head["rank"], head["world_size"], head["mode"]) for head in log.heads] == [
        (rank, program.ranks, program.mode) for rank in range(program.ranks)
    ]
    assert log.steps == len(seen[0]["reduced"])
    gradients = [brought(program, rank, log.steps) for rank in range(program.ranks)]
    expected = np.sum(gradients, axis=0)
    buckets = log.buckets()
    assert buckets
    for bucket, place in buckets.items():
        for step, contributions in log.contributions(bucket):
            total = np.zeros(place.stop - place.start)
            for gradient, contribution in zip(gradients, contributions, strict=True):
                steps = [*contribution.earlier, *([step] if contribution.own else [])]
                total += gradient[steps, place].sum(0)
            if program.mode == "drop":
                total *= program.ranks / sum(contribution.own for contribution in contributions)
            expected[step, place] = total
    given = seen[0]["reduced"].astype(np.float64)
    if program.batch_norm or program.mode == "drop":
        np.testing.assert_allclose(given, expected, rtol=1e-5, atol=1e-4)
    else:
        np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("program", LOGGED)
def test_the_ledger_counts_what_the_log_says(program: Program, outcomes: Outcomes) -> None:
    seen = outcomes.of(program)
    log = Participation(program, outcomes.records[program.name])
    for rank, lines in zip(seen, log.filled, strict=True):
        ledger = rank["ledger_after_flush"] or rank["ledger"]
        assert ledger["filled_by_proxy"] == len(lines)
        assert all(line.reached <= line.slot for line in lines)
        assert [line.slot for line in lines] == sorted({line.slot for line in lines})
        for bucket in ledger["buckets"]:
            filled = sum(line.bucket == bucket["bucket"] for line in lines)
            assert bucket["late"] + bucket["dropped"] + bucket["pending"] == filled


@pytest.mark.parametrize("program", [param for param in LOGGED if param.values[0].together])
def test_a_rank_that_is_in_time_alone_is_all_there_is(program: Program, outcomes: Outcomes) -> None:
    """Its own gradient, as `each_result` shows: neither zeros, nor in drop divided by the world size."""
    outcomes.of(program)
    log = Participation(program, outcomes.records[program.name])
    own = [sum(c.own for c in all_of) for bucket in log.buckets() for _, all_of in log.contributions(bucket)]
    assert own.count(1) > 3


@pytest.mark.parametrize("program", LOGGED)
def test_every_rank_makes_the_same_collectives(program: Program, outcomes: Outcomes) -> None:
    """As it sees them itself, whoever filled its slots: as many, of the same kind and size, in the same order."""
    outcomes.of(program)
    made = []
    for rank in range(program.ranks):
        lines = (outcomes.records[program.name] / f"rank-{rank:05}.jsonl").read_text().splitlines()
        fields = ("collective_seq_id", "kind", "bytes", "state")
        made.append([tuple(json.loads(line)[name] for name in fields) for line in lines])
    assert made == [made[0]] * program.ranks
    assert {state for *_, state in made[0]} == {"completed"}


@pytest.mark.parametrize("program", [pytest.param(program, id=program.name) for program in FLOATS])
def test_gloo_given_the_log_reproduces_every_result_bitwise(program: Program, outcomes: Outcomes) -> None:
    """Process groups of gloo on threads of one process, gradients computed anew: see oracle.py."""
    outcomes.of(program)
    folder = outcomes.records[program.name].parent
    done = subprocess.run(
        [sys.executable, str(HERE / "oracle.py"), program.name, str(folder)],
        env=environment(PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["equal"] == said["results"] >= 45 * len(program.sizes), said
    assert said["partial"] > 0
    assert said["parameters"]
    # A convex problem: of the loss that training takes away, lateness costs a tenth at most.
    assert said["loss"] <= said["synchronous"] + 0.1 * said["at the start"], said


@pytest.mark.parametrize(
    ("program", "forced"),
    [pytest.param(first, second, id=first.name) for first, second in zip(FORCED[::2], FORCED[1::2], strict=True)],
)
def test_a_forced_run_is_the_recorded_one_bit_for_bit(program: Program, forced: Program, outcomes: Outcomes) -> None:
    """Other ranks are late in it."""
    first, second = outcomes.of(program), outcomes.of(forced)
    assert sum(rank["ledger"]["filled_by_proxy"] for rank in first) > 0
    for before, after in zip(first, second, strict=True):
        assert after["digests"] == before["digests"]
        np.testing.assert_array_equal(after["reduced"], before["reduced"])
        counted = [[{**b, "bucket": 0} for b in rank["ledger"]["buckets"]] for rank in (before, after)]
        assert counted[0] == counted[1]
    logs = [Participation(each, outcomes.records[each.name]) for each in (program, forced)]
    assert logs[0].filled == logs[1].filled


REFUSED = """
os.environ |= {"STRAGGLER_MITIGATE": "carry", "STRAGGLER_DIR": os.environ["TEST_JOB"] + "/records"}
head = {"schema": 1, "type": "participation_start", "rank": RANK, "world_size": WORLD, "mode": "carry", "staleness": 8}
line = {
    "schema": 1, "type": "participation", "rank": RANK, "slot": 40, "reached": 40, "kind": "all_reduce", "bucket": 0,
    "root": 0, "reduction": 0, "dtype": 6, "elements": 8, "bytes": 32, "scale": 1.0,
}
wrong = {
    "of another world size": [{**head, "world_size": WORLD + 1}],
    "of another mode": [{**head, "mode": "drop"}],
    "of another rank": [{**head, "rank": RANK + 1}],
    "of another schema": [{**head, "schema": 99}],
    "without a head": [line],
    "with a slot that is filled twice": [head, line, line],
    "with a slot that is no number": [head, {**line, "slot": "forty"}],
    "with a slot below zero": [head, {**line, "slot": -1}],
    "with another kind": [head, {**line, "kind": "all_gather"}],
    "without a field": [head, {name: value for name, value in line.items() if name != "reached"}],
    "reached beyond its slot": [head, {**line, "reached": 41}],
    "cut off": None, "empty": [], "no JSON": None, "missing": None,
}
said = {}
for name, lines in wrong.items():
    folder = os.path.join(os.environ["TEST_JOB"], name.replace(" ", "_") + str(RANK))
    os.makedirs(folder)
    path = os.path.join(folder, f"participation-rank-{RANK}.jsonl")
    text = "".join(json.dumps(each) + "\\n" for each in lines or [])
    if name == "cut off":
        text = json.dumps(head) + "\\n" + json.dumps(line)[:50]
    if name == "no JSON":
        text = "\\x00\\xff what is this\\n"
    if name != "missing":
        open(path, "w").write(text)
    os.environ["STRAGGLER_FORCE_PARTICIPATION"] = folder
    try:
        init()
        said[name] = "accepted"
        dist.destroy_process_group()
    except Exception as error:
        said[name] = f"{type(error).__name__}: {error}"
del os.environ["STRAGGLER_FORCE_PARTICIPATION"]
init()
ones = torch.ones(2)
dist.all_reduce(ones)
dist.destroy_process_group()
tell(said=said, right=ones.tolist())
"""


def test_a_log_of_another_run_or_a_damaged_one_is_refused_at_init(job: Callable[..., Job]) -> None:
    """With a ValueError that names the setting and the file; and then a group without it works."""
    done = job(REFUSED, 2).succeeded()
    for told in done.told:
        assert told["right"] == [2, 2]
        assert len(told["said"]) == 15
        for name, text in told["said"].items():
            clear = rf"ValueError: STRAGGLER_FORCE_PARTICIPATION.*{name.replace(' ', '_')}.*"
            assert re.fullmatch(clear, text), (name, text)
        assert "3" in told["said"]["of another world size"]
        assert "drop" in told["said"]["of another mode"]
