"""The command: what it refuses before it starts a process, and one run on two ranks."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from torch.multiprocessing.spawn import ProcessRaisedException

from torch_straggler import bench
from torch_straggler.bench import job
from torch_straggler.bench.window import wait_until

SECONDS = 120


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command with arguments that it has to refuse; gives what it said."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(job, "run", lambda plan: pytest.fail("processes were started"))
        assert bench.main(list(arguments)) == 2
        return capsys.readouterr().err

    return run


@pytest.fixture
def straggler_bench(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command as a process of its own, in a session of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STRAGGLER_")}
        return subprocess.run(
            [sys.executable, "-m", "torch_straggler.bench", *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            start_new_session=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "1"], "--ranks '1' is not valid; allowed: a whole number from 2 to 64"),
        (
            ["--collectives", "scan"],
            "--collectives 'scan' is not known; allowed: all_reduce, all_gather, reduce_scatter",
        ),
        (
            ["--patterns", "late"],
            "--patterns 'late' is not known; allowed: none, one_late, ascending, random, half_late",
        ),
        (["--bytes", "4X"], "--bytes '4X' is not a size; allowed: 4 to 1G"),
        (["--json", "/nowhere/a.json"], "--json '/nowhere/a.json' cannot be written: No such file or directory"),
        (["--json", "/"], "--json '/' cannot be written: Is a directory"),
        (["--patterns", "random", "--skews", "0"], "nothing is left to measure"),
        (["--backends", "mpi"], "--backends 'mpi' is not known; allowed: gloo, straggler_gloo, nccl, straggler_nccl"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate (straggler bench --help)"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(
    refused: Callable[..., str], arguments: list[str], said: str
) -> None:
    text = refused(*arguments)
    assert text.startswith(f"straggler bench: {said}")
    assert text.count("\n") == 1


def test_nccl_without_a_gpu_for_each_rank_is_refused(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "gpus", lambda: 1)
    said = "straggler bench: --backends nccl needs a GPU for each of the 4 ranks; there are 1 here\n"
    assert refused("--backends", "straggler_nccl") == said


@pytest.mark.parametrize("name", ["STRAGGLER_INTERCEPT", "STRAGGLER_INJECT"])
def test_a_setting_under_which_bare_is_not_bare_is_refused(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "gloo")
    assert refused().startswith(f"straggler bench: {name} is set")


def test_a_bad_setting_of_the_wrapped_backend_is_refused(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAGGLER_WINDOW", "soon")
    assert "STRAGGLER_WINDOW" in refused("--backends", "straggler_gloo")


def test_waiting_ends_no_sooner_than_the_instant_and_at_once_when_it_is_past() -> None:
    due = time.monotonic_ns() + 2_000_000
    assert wait_until(due) >= due
    assert wait_until(due) >= due


def test_a_failed_rank_is_reported_with_its_error_and_what_it_said_last(tmp_path: Path) -> None:
    (tmp_path / "rank-1.txt").write_text("".join(f"line {number}\n" for number in range(100)))
    error = ProcessRaisedException("\n\n-- Process 1 ...\nTraceback ...\nRuntimeError: Connection closed\n", 1, 99)
    lines = job.failure(error, tmp_path).splitlines()
    assert lines[0] == "rank 1 failed: RuntimeError: Connection closed"
    assert (lines[1], lines[-1], len(lines)) == ("line 85", "line 99", 16)


@pytest.mark.timeout(SECONDS + 30)
def test_two_ranks_measure_every_collective_and_results_are_bitwise_equal(
    straggler_bench: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = straggler_bench("--quick", "--ranks=2", "--bytes=4K", "--skews=2", "--json=run.json")
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["command"] == "straggler bench --quick --ranks=2 --bytes=4K --skews=2 --json=run.json"
    assert {row["collective"] for row in run["rows"]} == {"all_reduce", "all_gather", "reduce_scatter", "broadcast"}
    assert {(row["backend"], row["role"]) for row in run["rows"]} == {
        ("gloo", "bare"),
        ("gloo", "control"),
        ("straggler_gloo", "wrapped"),
    }
    assert len(run["rows"]) == 4 * 5 * 3
    for row in run["rows"]:
        assert row["bitwise_equal"], row
        assert row["measurements"] == 4
        assert 0 < row["last_to_last_us"]["median"] <= row["first_to_last_us"]["median"]
        assert row["arrival_skew_imposed_us"] == pytest.approx(row["skew_transfer_times"] * row["transfer_us"])
    for line in ("straggler_gloo (wrapped) against bare, 20 cells", "gloo (control) against bare, 20 cells"):
        assert line in done.stdout
    assert "[4/4, " in done.stderr


@pytest.mark.timeout(SECONDS + 30)
def test_the_time_limit_ends_every_rank(straggler_bench: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = straggler_bench("--ranks=2", "--repeats=10000", "--time-limit=1")
    assert done.returncode == 1
    assert done.stderr.endswith("straggler bench: the time limit of 1 s was reached, and the ranks were ended\n")
