"""No gradient is lost, doubled or misplaced, whoever is late: what was applied and what is owed, against NumPy.

Ranks are late at random from step 21 on, so that slots are filled by proxy. See programs.py for what is run.
"""

import re
from typing import Any

import numpy as np
import pytest
from closed_form import expected, owed, segments
from program_runs import Outcomes
from program_table import PROGRAMS
from programs import Program, steps_made

pytestmark = pytest.mark.timeout(420)  # the first test waits for all programs
ALL = [pytest.param(program, id=program.name) for program in PROGRAMS]
CARRY = [pytest.param(program, id=program.name) for program in PROGRAMS if program.mode == "carry"]
DROP = [pytest.param(program, id=program.name) for program in PROGRAMS if program.mode == "drop"]
FLUSHED = [param for param in CARRY if not param.values[0].fewer and param.values[0].stops_at is None]


def assert_equal(program: Program, ours: Any, theirs: Any) -> None:
    """Exactly; with 3 ranks, and where BatchNorm divides, within rounding."""
    if program.ranks == 3 or program.effective:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-3)
    elif program.batch_norm:
        behind = segments(program)[-1]
        np.testing.assert_allclose(ours[behind], theirs[behind], rtol=0, atol=1e-2)
        np.testing.assert_array_equal(np.delete(ours, behind), np.delete(theirs, behind))
    else:
        np.testing.assert_array_equal(ours, theirs)


def reduced(seen: dict[str, Any], steps: int) -> Any:
    return seen["reduced"][:steps].astype(np.float64).sum(0)


@pytest.mark.parametrize("program", CARRY)
def test_applied_plus_owed_is_what_all_ranks_brought(program: Program, outcomes: Outcomes) -> None:
    """Up to the end of a run that ends while a rank is late."""
    seen = outcomes.of(program)
    steps = steps_made(program)
    if len(program.ddp) == 0:
        return  # one bucket of several parameters: after the flush
    assert_equal(program, reduced(seen[0], steps) + owed(program, seen), expected(program, steps))


@pytest.mark.parametrize("program", FLUSHED)
def test_after_a_flush_nothing_is_owed_and_all_is_applied(program: Program, outcomes: Outcomes) -> None:
    seen = outcomes.of(program)
    assert [rank["owed_after_flush"] for rank in seen] == [{}] * program.ranks
    assert len(seen[0]["reduced"]) == program.steps + 1
    assert_equal(program, reduced(seen[0], program.steps + 1), expected(program, program.steps + 1))


@pytest.mark.parametrize("program", [p for p in CARRY if p.values[0].optimizer == "sgd" and not p.values[0].clip])
def test_the_parameters_moved_by_what_was_reduced(program: Program, outcomes: Outcomes) -> None:
    """Plain SGD: start minus end, over the learning rate. So the closed form holds for parameters too."""
    for rank in outcomes.of(program):
        steps = len(rank["reduced"]) - (len(rank["reduced"]) > steps_made(program))
        if program.fewer:
            continue  # at its end Join gives all ranks the parameters of one
        assert_equal(program, (rank["start"] - rank["end"]) / program.learning_rate, reduced(rank, steps))


@pytest.mark.parametrize("program", ALL)
def test_replicas_are_identical_at_every_equal_step(program: Program, outcomes: Outcomes) -> None:
    """Parameters after each step, bit for bit; with BatchNorm, the buffers that each forward begins with."""
    seen = outcomes.of(program)
    steps = min(len(rank["digests"]) for rank in seen)
    assert steps >= 45
    for rank in seen:
        assert rank["digests"][:steps] == seen[0]["digests"][:steps]
        assert rank["buffers"] == seen[0]["buffers"]
        np.testing.assert_array_equal(rank["reduced"][:steps], seen[0]["reduced"][:steps])
    assert len(set(seen[0]["digests"])) == len(seen[0]["digests"])


@pytest.mark.parametrize("program", ALL)
def test_the_ledger_is_exact(program: Program, outcomes: Outcomes) -> None:
    """Of each bucket, once at the end and once after the flush: every backward since it is known was produced once."""
    for number, rank in enumerate(outcomes.of(program)):
        for name, steps in (("ledger", steps_made(program)), ("ledger_after_flush", len(rank["reduced"]))):
            ledger = rank[name]
            if ledger is None:
                continue
            assert (ledger["rank"], ledger["world_size"], ledger["mode"]) == (number, program.ranks, program.mode)
            for bucket in ledger["buckets"]:
                parts = [bucket[part] for part in ("on_time", "late", "dropped", "pending")]
                assert bucket["produced"] == sum(parts)
                if not program.stands_down:
                    # DDP makes its buckets anew after the first backward, of a static graph after the second. The
                    # fourth backward with these makes them known.
                    assert bucket["produced"] == steps - (5 if program.ddp.get("static_graph") else 4), bucket
                if program.mode == "drop":
                    assert bucket["late"] == bucket["pending"] == 0
                elif not program.poisoned:
                    assert bucket["dropped"] == 0
                assert bucket["staleness_max"] <= program.staleness + 1
                assert bucket["late"] <= bucket["staleness_sum"] <= bucket["late"] * (program.staleness + 1)


@pytest.mark.parametrize("program", ALL)
def test_slots_are_filled_by_proxy_or_it_stands_down_and_says_why(program: Program, outcomes: Outcomes) -> None:
    ledgers = [rank["ledger"] for rank in outcomes.of(program)]
    filled = [ledger["filled_by_proxy"] for ledger in ledgers]
    if program.stands_down is None:
        assert all(filled[rank] > 0 for rank in program.late or (0,)), ledgers
        for rank, ledger in enumerate(ledgers):
            assert ledger["armed"] == (rank not in program.left_alone), ledgers
            assert ("root" in ledger["reason"]) if rank in program.left_alone else (ledger["reason"] is None), ledgers
        return
    assert [ledger["armed"] for ledger in ledgers] == [False] * program.ranks, ledgers
    assert all(re.search(program.stands_down, ledger["reason"]) for ledger in ledgers), ledgers
    if not program.armed_at_first:
        assert filled == [0] * program.ranks
    said = outcomes.said[program.name]
    assert "straggler: mitigation " in said


@pytest.mark.parametrize("program", [p for p in CARRY if not p.values[0].stands_down and p.values[0].ddp])
def test_a_program_that_ends_late_owes_something(program: Program, outcomes: Outcomes) -> None:
    """So that the closed form is not held by runs alone in which nothing is owed."""
    seen = outcomes.of(program)
    pending = sum(bucket["pending"] for rank in seen for bucket in rank["ledger"]["buckets"])
    assert (pending > 0) == bool(np.any(owed(program, seen) != 0))


@pytest.mark.parametrize("program", [p for p in ALL if p.values[0].ddp and not p.values[0].set_to_none])
def test_a_gradient_stays_where_ddp_has_put_it(program: Program, outcomes: Outcomes) -> None:
    """Whatever a slot was filled with: from the third step on the tensor is the same, and no two share memory."""
    for rank in outcomes.of(program):
        places = rank["places"][3:]
        assert places == [places[0]] * len(places)
        assert len(set(places[0])) == len(places[0])
