"""What the drivers of the benches' jobs share: rules of a session in its launch, lines, and whose record is whose."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "jobs"))
import launch

from torch_straggler.injection_rule import delays, parse


def test_a_rule_ends_with_its_session() -> None:
    assert launch.shifted("rank=1,where=input,ms=3,from=20", 100, 50) == "rank=1,where=input,ms=3,from=120,to=149"
    assert launch.shifted("rank=1,where=input,ms=3,to=30", 100, 50) == "rank=1,where=input,ms=3,to=130,from=108"


@settings(deadline=None)  # the machine may be busy
@given(
    begin=st.integers(0, 30),
    every=st.integers(1, 5),
    rotate=st.booleans(),
    number=st.integers(0, 3),
    parts=st.sampled_from((1, 4)),
)
def test_each_session_of_a_launch_is_delayed_as_if_it_were_alone(
    begin: int, every: int, rotate: bool, number: int, parts: int
) -> None:
    steps, world = 40, 4
    text = f"rank=1,where=forward,ms=3,from={begin},every={every},rotate={str(rotate).lower()}"
    (alone,) = parse(text)
    (shifted,) = parse(launch.shifted(text, number * steps, steps, parts))
    for step in range(steps):
        for rank in range(world):
            late = delays(shifted, rank, world, (number * steps + step) * parts)  # before the first of the backwards
            assert late == delays(alone, rank, world, step)
    assert not any(delays(shifted, rank, world, ((number + 1) * steps) * parts) for rank in range(world))


def test_a_delay_in_the_backward_is_in_each_of_them() -> None:
    (rule,) = parse(launch.shifted("rank=0,where=backward,ms=1,from=10", 0, 20, 4))
    assert [step for step in range(100) if delays(rule, 0, 2, step)] == list(range(40, 80))


def test_records_belong_to_the_session_that_began_before_them() -> None:
    kinds = ["session", "window", "session", "verdict", "report", "session", "report", "session", "window"]
    records = [{"type": kind, "number": number} for number, kind in enumerate(kinds)]
    assert [[r["number"] for r in own] for own in launch.by_session(records)] == [[2, 3, 4], [5, 6]]


def test_lines_of_a_time_are_those_of_the_detector() -> None:
    lines = [(1.0, "STRAGGLER rank 0"), (2.0, "STRAGGLER rank 1"), (2.5, "a word of the job"), (3.0, "CLEARED rank 1")]
    assert launch.within(lines, 1.0, 3.0) == [(2.0, "STRAGGLER rank 1"), (3.0, "CLEARED rank 1")]


def test_a_command_is_heard_as_it_speaks() -> None:
    said: list[tuple[float, str]] = []
    program = "import sys, time; print('one', flush=True); print('err', file=sys.stderr, flush=True); time.sleep(0.5)"
    code, lines = launch.watch(
        [sys.executable, "-c", program], dict(os.environ), 60, lambda line: said.append((time.monotonic(), line))
    )
    assert code == 0 and [text for _, text in said] == ["one"] and [text for _, text in lines] == ["err"]
    assert time.monotonic() - said[0][0] > 0.4


def test_a_command_that_does_not_end_is_asked_to() -> None:
    code, _ = launch.watch([sys.executable, "-c", "import time; time.sleep(600)"], dict(os.environ), 0.5)
    assert code == -signal.SIGTERM


def test_what_is_raised_at_a_line_is_raised_at_the_end_and_holds_nothing_up() -> None:
    lines = []

    def said(line: str) -> None:
        lines.append(line)
        raise KeyError(line)

    with pytest.raises(KeyError, match="0"):
        launch.watch([sys.executable, "-c", "print(0); print(1)"], dict(os.environ), 60, said)
    assert lines == ["0", "1"]
