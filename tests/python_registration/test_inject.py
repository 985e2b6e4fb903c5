"""The delays where they belong: in a process of its own, of one rank."""

import time
from collections.abc import Callable

import pytest
from python_process import Run

from torch_straggler.inject import never_happened, pause
from torch_straggler.injection_rule import Rule, parse

# Twelve training steps, each with an evaluation. Says what part begins, and what is delayed instead of delaying it.
STEPS = """
from torch.utils.data import DataLoader, TensorDataset
from torch_straggler import inject
inject.pause = lambda ms, spin: print("delay", ms, "spin" if spin else "sleep")
init("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)))
batches = iter(DataLoader(TensorDataset(torch.ones(12, 4)), batch_size=1))
for step in range(12):
    print("part", step, "input")
    (batch,) = next(batches)
    print("part", step, "forward")
    loss = model(batch).sum()
    print("part", step, "backward")
    loss.backward()
    print("part", step, "evaluation")
    with torch.no_grad():
        model(batch)
dist.destroy_process_group()
"""


def delays_of(output: str) -> list[tuple[int, str, str]]:
    """(step, part, delay) of each delay."""
    found, step, part = [], -1, ""
    for line in output.splitlines():
        what, first, second = line.split()
        if what == "part":
            step, part = int(first), second
        else:
            found.append((step, part, f"{first} {second}"))
    return found


@pytest.mark.parametrize("place", ["input", "forward", "backward"])
def test_a_delay_is_at_its_place_once_a_step_and_nowhere_else(place: str, succeeds: Callable[..., str]) -> None:
    output = succeeds(STEPS, STRAGGLER_INJECT=f"rank=0,where={place},ms=80")
    assert delays_of(output) == [(step, place, "80.0 sleep") for step in range(8, 12)]


@pytest.mark.parametrize("workers", [0, 1])
def test_the_delay_of_an_input_is_inside_the_scope_of_the_fetch(workers: int, succeeds: Callable[..., str]) -> None:
    output = succeeds(
        f"""
        from torch.utils.data import DataLoader
        from torch_straggler import inject
        def pause(ms, spin):
            with torch.autograd.profiler.record_function("delay"):
                pass
        inject.pause = pause
        init("gloo")
        weight = torch.ones(1, requires_grad=True)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            for batch in DataLoader([torch.ones(1)] * 3, num_workers={workers}):
                (weight * batch).sum().backward()
        for event in profile.events():
            if event.name == "delay":
                print(event.cpu_parent.name if event.cpu_parent else "nothing")
        dist.destroy_process_group()
        """,
        STRAGGLER_INJECT="rank=0,where=input,ms=1,from=0",
    )
    kind = "MultiProcessing" if workers else "SingleProcess"
    assert output.split() == [f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__"] * 3


def test_rules_add_up_and_another_rank_is_left_alone(succeeds: Callable[..., str]) -> None:
    rules = "rank=0,where=forward,ms=50,to=8;rank=0,where=forward,ms=60,to=8,spin=true;rank=1,where=backward,ms=100"
    delays = delays_of(succeeds(STEPS, STRAGGLER_INJECT=rules))
    assert delays == [(8, "forward", "50.0 sleep"), (8, "forward", "60.0 spin")]


@pytest.mark.parametrize("spin", [False, True])
def test_a_delay_takes_its_time_of_the_wall_clock_and_of_the_cpu_only_if_it_spins(spin: bool) -> None:
    wall, cpu = time.perf_counter(), time.thread_time()
    pause(60, spin)
    assert time.perf_counter() - wall >= 0.06
    assert (time.thread_time() - cpu > 0.01) == spin


def test_the_delay_of_a_backward_is_inside_the_graph_task(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        from torch_straggler import inject
        inject.pause = lambda ms, spin: print("task", torch._C._current_graph_task_id())
        init("gloo")
        weight = torch.ones(3, requires_grad=True)
        (2 * weight).sum().backward()
        torch.autograd.backward([(2 * weight).sum(), (3 * weight).sum()])
        torch.autograd.backward(tensors=(2 * weight).sum())
        """,
        STRAGGLER_INJECT="rank=0,where=backward,ms=1,from=0",
    )
    tasks = [int(line.split()[1]) for line in output.splitlines()]
    assert len(tasks) == 3  # once a backward, however many roots
    assert all(task >= 0 for task in tasks)


def test_a_nested_backward_is_no_step_of_its_own(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        from torch_straggler import inject
        from torch.utils.checkpoint import checkpoint
        init("gloo")
        layer = torch.nn.Linear(3, 3)
        for _ in range(5):
            checkpoint(layer, torch.ones(1, 3, requires_grad=True), use_reentrant=True).sum().backward()
        print(inject._installed._step)
        """,
        STRAGGLER_INJECT="rank=0,where=backward,ms=1",
    )
    assert output.split() == ["5"]


def test_errors_of_backward_are_torchs_own(succeeds: Callable[..., str]) -> None:
    code = """
        import torch
        for attempt in (lambda: torch.ones(2).sum().backward(), lambda: torch.ones(2, requires_grad=True).backward()):
            try:
                attempt()
            except RuntimeError as error:
                print(error)
        """
    assert succeeds(code, STRAGGLER_INJECT="rank=0,where=backward,ms=1") == succeeds(code)


def test_malformed_rules_are_said_at_once_and_raised_when_a_group_is_made(python: Run) -> None:
    done = python("print('imported'); init('gloo')", STRAGGLER_INJECT="rank=0,where=sideways,ms=1")
    assert done.returncode != 0
    assert "imported" in done.stdout
    assert done.stderr.startswith("torch_straggler: STRAGGLER_INJECT=rank=0,where=sideways,ms=1: ")
    last = done.stderr.strip().splitlines()[-1]
    assert "RuntimeError" in last and "allowed: input, forward, backward, collective" in last


# ---- What never happened ---------------------------------------------------------------------------------------------


def said(rule: Rule, happened: bool, rank: int) -> list[str]:
    return never_happened([rule], [happened], (rank, 4), 20)


def test_the_rank_that_a_rule_is_about_says_that_it_never_happened() -> None:
    (rule,) = parse("rank=2,where=input,ms=8,from=300")
    assert said(rule, False, rank=1) == []
    assert said(rule, True, rank=2) == []
    (line,) = said(rule, False, rank=2)
    assert "rank=2,where=input,ms=8 never happened (20 steps were seen, it starts at step 300)" in line


def test_rank_0_speaks_for_a_rule_about_nobody_in_particular() -> None:
    for text in ("rank=all,where=input,ms=8", "rank=random,where=input,ms=8", "rotate=true,where=input,ms=8"):
        (rule,) = parse(text)
        assert said(rule, False, rank=0) and not said(rule, False, rank=1)
    (line,) = said(parse("rank=9,where=input,ms=8")[0], False, rank=0)
    assert "the job has no rank 9" in line
