"""A run of torch's suite says what went wrong in it: real ranks, each test made to fail in its own way."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from outcomes import Outcome
from suite_run import environment, run_suite

# Seconds; the runs end themselves well before.
pytestmark = pytest.mark.timeout(120)
TEST = "test_all_reduce_sum"


def test_what_the_suite_skips_by_its_name_runs_where_it_is_taken_for_gloo(tmp_path: Path) -> None:
    by_name = "test_sparse_all_reduce_sum"
    names = ("straggler_gloo", "taken for gloo")
    with ThreadPoolExecutor(len(names)) as threads:
        runs = list(threads.map(lambda name: run_suite(name, 2, [TEST, by_name], left=tmp_path), names))
    kinds = [{test: outcome.kind for test, outcome in run.outcomes.items()} for run in runs]
    assert kinds == [{TEST: "passed", by_name: "skipped"}, {TEST: "passed", by_name: "passed"}]


def test_a_run_that_is_not_intercepted_fails(tmp_path: Path) -> None:
    run = run_suite("intercepted", 2, [TEST], left=tmp_path, STRAGGLER_INTERCEPT="")
    said = "AssertionError: the backend is a ProcessGroupGloo, not a StragglerBackend"
    assert run.outcomes == {TEST: Outcome("failed", said)}


def test_a_test_that_hangs_is_named_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    run = run_suite(
        "intercepted",
        2,
        [TEST],
        left=tmp_path,
        TESTED_CLASS="DelayedBackend",
        STRAGGLER_INJECT="rank=0,where=collective,ms=60000,from=0",
        DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="3",
    )
    assert run.outcomes == {TEST: Outcome("failed", "TimeoutError: hung: not done after 3 s, and ended")}
    assert run.seconds < 60, "the hang itself takes longer than that"
    assert not [each for each in psutil.process_iter(["cmdline"]) if str(tmp_path) in str(each.info["cmdline"])]


def test_a_run_without_outcomes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises((OSError, ValueError)):
        run_suite("gloo", 2, [TEST], left=tmp_path, PYTEST_ADDOPTS="--no-such-option")  # it ends before it begins


def test_settings_of_the_caller_do_not_reach_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        "STRAGGLER_DIR",
        "TORCH_DISTRIBUTED_DEBUG",
        "MASTER_PORT",
        "CI",
        "GLOO_SOCKET_IFNAME",
        "PYTEST_ADDOPTS",
    ]:
        monkeypatch.setenv(name, "something")
    assert "something" not in environment("gloo", 2, "/folder").values()
