"""From what a launch leaves to the lines of the results and the tables, on records made up by hand."""

import io
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "scoreboard"))
import again
import baselines
import cases
import measure
import scoreboard
import scoring
import tables

CASE = next(
    case
    for case in cases.matrix([1])
    if (case.delay, case.share, case.job, case.ranks, case.culprit) == ("D2", 0.2, "ddp", 2, 1)
)
STEP_S, LATE_S = 0.040, 0.006


def times() -> np.ndarray[Any, Any]:
    """Ranks x steps x phases: steps of 40 ms, 6 ms longer since the delay; the last 10 ms are the backward."""
    lengths = np.where(np.arange(CASE.steps) < CASE.begins, STEP_S, STEP_S + LATE_S)
    ends = 1000 + np.cumsum(lengths)
    phases = ends[:, None] - np.array([0.030, 0.011, 0.001, 0.0])
    return np.stack([phases, phases])


def records(*verdicts: dict[str, Any]) -> list[dict[str, Any]]:
    """20 ms of own time a step, of rank 1 26 since the delay, each with a noise of its own."""
    random, found = np.random.default_rng(6), [{"type": "session", "window": 10}]
    own = 20_000 + random.normal(0, 500, (2, CASE.steps))
    own[1, CASE.begins :] += 6_000
    for first in range(0, CASE.steps, 10):
        for rank in range(2):
            self_us = own[rank, first : first + 10].round().astype(int).tolist()
            found.append({"type": "window", "first_step": first, "self_us": self_us, "rank": rank})
    report = {
        "type": "report", "world_size": 2, "steps_found_by": "graph_task", "windows_compared": 42,
        "windows_incomplete": 0, "collectives": 3360, "records_dropped": 0,
        "ranks": [{"rank": rank, "time_lost_share": 0.1} for rank in range(2)],
    }  # fmt: skip
    return [*found, *({"type": "verdict"} | verdict for verdict in verdicts), report]


def named(step: int) -> dict[str, Any]:
    return dict.fromkeys(measure.VERDICT_FIELDS) | {
        "kind": "straggler", "ranks": [1], "cause": "not_attributed", "step": step,
    }  # fmt: skip


def result(*verdicts: dict[str, Any], lines: list[tuple[float, str]] | None = None) -> scoring.Result:
    return measure.result(CASE, records(*verdicts), times(), lines or [], CASE.begins) | {"folder": "run"}


def test_a_line_of_the_results_says_what_is_true_and_what_was_told() -> None:
    told_at = times()[0, 125, -1] + 0.01
    found = result(named(119), lines=[(told_at, "STRAGGLER rank 1 (vm)")])
    assert (found["culprit"], found["since"], found["injected_ms"]) == (1, CASE.begins, 6.0)
    assert (found["step_ms"], found["longer_ms"]) == (pytest.approx(40.0), pytest.approx(6.0))
    assert found["verdicts"][0]["step"] == 119 and found["verdicts"][0]["line_step"] == 126
    assert found["noise_step_ms"] == pytest.approx(0.5 * np.sqrt(2), rel=0.1)  # of the difference of two ranks
    assert json.loads(json.dumps(found)) == found


def test_noise_is_not_known_where_the_steps_are_not_the_jobs() -> None:
    other = [record for record in records() if record.get("first_step", 0) < 300]
    assert measure.result(CASE, other, times(), [], CASE.begins)["noise_step_ms"] is None


def test_an_excess_is_above_the_median_of_the_others() -> None:
    windows = [
        {"first_step": 0, "self_us": [1000 * rank, 5000], "rank": rank} for rank in range(4)
    ]  # 0, 1, 2, 3 and 5, 5, 5, 5 ms
    assert measure.excess_of(windows, 3, 4) == pytest.approx([2.0, 0.0])
    assert measure.excess_of(windows[:3], 3, 4) is None


def test_arrivals_are_of_a_session_and_of_the_groups_members() -> None:
    first = {("0", 0, 5.0): 5.0, ("0", 0, 50.0): 50.0, ("1", 0, 51.0): 51.0, ("0", 1, 52.0): 52.0}
    other = {("0", 0, 5.1): 5.1, ("0", 0, 50.2): 50.2, ("0", 1, 51.9): 51.9}
    third = {("1", 0, 51.4): 51.4}
    found = measure.arrivals([first, other, third], 40, 60)
    assert found == pytest.approx(
        np.array([[50.0, 50.2, np.nan], [51.0, np.nan, 51.4], [52.0, 51.9, np.nan]]), nan_ok=True
    )
    assert measure.arrivals([first, other, third], 60, 70).shape == (0, 3)


class Recorded:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def prepare(self, processes: list[int], culprit: int) -> None:
        self.calls.append(f"prepare {culprit}")

    def start(self, share: float, step_s: float) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")


def test_a_disturbance_lasts_from_its_step_to_the_end_of_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "processes", lambda mark, ranks: list(range(ranks)))
    disturbed = [case for case in cases.matrix([1]) if (case.delay, case.job, case.ranks) == ("D4 quota", "ddp", 2)]
    disturbance = Recorded()
    progress = measure.Progress(cases.Launch("ddp", 2, "quota", tuple(disturbed)), "", disturbance)
    for number in range(2):
        for step in range(0, cases.STEPS, 10):
            progress.said(f"session {number} step {step}")
            progress.said("a word of the job")
            began = step >= disturbed[number].begins and step < cases.STEPS - 10
            assert progress.on == began
    assert disturbance.calls == ["prepare 0", "start", "stop", "prepare 1", "start", "stop"]
    assert set(progress.started) == {0, 1}


def test_a_rank_that_is_not_there_is_a_launch_that_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stopped = []

    def watch(command: list[str], environment: dict[str, str], limit: float, said: Any) -> Any:
        said("session 0 step 20")

    monkeypatch.setattr(measure.shared, "watch", watch)
    monkeypatch.setattr(measure.Quota, "stop", lambda self: stopped.append(self))
    disturbed = tuple(
        case for case in cases.matrix([1]) if (case.delay, case.job, case.ranks) == ("D4 quota", "ddp", 2)
    )
    with pytest.raises(measure.LaunchError, match="KeyError"):
        list(measure.run(cases.Launch("ddp", 2, "quota", disturbed), tmp_path))
    assert len(stopped) == 1


def test_the_ranks_of_a_launch_are_found_by_its_mark() -> None:
    environment = {**os.environ, measure.MARK: "here"}
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", "input()"], env=environment | {"RANK": str(rank)}, stdin=subprocess.PIPE
        )
        for rank in (1, 0)
    ]
    try:
        assert measure.processes(f"{measure.MARK}=here", 2) == [programs[1].pid, programs[0].pid]
        with pytest.raises(KeyError):
            measure.processes(f"{measure.MARK}=elsewhere", 1)
    finally:
        for program in programs:
            program.communicate()


# ---- What is run, and what is not run again --------------------------------------------------------------------------


def options(**other: Any) -> Any:
    chosen = {"seeds": "score", "rounds": 1, "only": None, "quick": False, "sessions": 8}
    return SimpleNamespace(**(chosen | other))


def test_what_is_in_the_results_is_not_run_again() -> None:
    every = [case for launch in scoreboard.plan(options(), set()) for case in launch.cases]
    done = {case.key for case in every[::2]}
    left = [case.key for launch in scoreboard.plan(options(), done) for case in launch.cases]
    assert sorted(left) == sorted({case.key for case in every} - done)


def test_some_can_be_chosen() -> None:
    chosen = [case for launch in scoreboard.plan(options(only=["D2 20% ddp 4", "D6"]), set()) for case in launch.cases]
    assert len(chosen) == 3 + 11 and {case.delay for case in chosen} == {"D2", "D6"}


def test_the_quick_ones_are_short_and_of_every_job() -> None:
    quick = [case for launch in scoreboard.plan(options(quick=True), set()) for case in launch.cases]
    assert {case.job for case in quick} == set(cases.LAYOUTS)
    assert sum(case.steps * (case.base_ms + 20) / 1e3 for case in quick) < 100


def test_whom_a_rule_named_is_kept_and_outlives_the_records(tmp_path: Path) -> None:
    found, lines = result(named(119)), tmp_path / "replays.jsonl"
    folder = tmp_path / "runs" / "run"
    folder.mkdir(parents=True)
    late = np.tile([[0.0, 0.006]], (CASE.steps, 1)) + times()[0, :, -1:] - 0.005
    np.savez(folder / "seen.npz", times=times(), arrivals=late)
    replays = scoreboard.replay([found], tmp_path, lines)
    assert len(replays) == (len(baselines.RULES) + 1) * len(scoreboard.MULTIPLIERS)
    assert replays[found["key"], "TraceLens, last start", 1.0] == [[1, 59]]
    (folder / "seen.npz").unlink()
    assert scoreboard.replay([found], tmp_path, lines) == replays
    assert len(lines.read_text().splitlines()) == len(baselines.RULES) + 1


def test_a_run_fed_to_our_detector_again_has_its_gates_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def rescore(folder: Path, **options: float) -> Any:
        asked.append(options)
        told = [("straggler", (1,), 139), ("cleared", (1,), 199), ("straggler", (1, 0), 259), ("straggler", (2,), None)]
        verdicts = [SimpleNamespace(kind=kind, ranks=ranks, step=step) for kind, ranks, step in told]
        return SimpleNamespace(options=(("relative_gate", "0.03"), ("persistence", "0.8")), verdicts=verdicts)

    monkeypatch.setattr(again.torch_straggler, "rescore", rescore, raising=False)
    assert again.named(Path("run"), 2.0) == [(1, 139), (0, 259)]
    assert asked == [{}, {"relative_gate": 0.06}]
    twice = result() | {"counted_steps": 2 * CASE.steps}
    seen = SimpleNamespace()
    assert scoreboard._named(tables.OURS, 2.0, twice, seen, Path("run")) == [[1, 69.0], [0, 129.0]]


def test_a_run_of_which_no_window_can_be_judged_names_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def rescore(folder: Path) -> Any:
        raise again.NoReportError("no window")

    monkeypatch.setattr(again.torch_straggler, "rescore", rescore, raising=False)
    assert again.named(Path("run"), 1.0) == []


def test_a_part_of_a_run_is_a_session_of_its_own() -> None:
    window = [{"type": "window", "first_step": first, "rank": rank} for first in range(0, 420, 10) for rank in range(2)]
    before = [{"type": kind} for kind in ("session", "rank", "group", "program", "counters", "arrivals")]
    whole = (
        before + window[:13] + [{"type": "arrivals", "n": 1}, {"type": "verdict"}] + window[13:] + [{"type": "report"}]
    )
    found = again.part(whole, 60)
    assert [record["type"] for record in found[:4]] == ["session", "rank", "group", "program"]
    steps = [record["first_step"] for record in found if record["type"] == "window"]
    assert steps == [first for first in range(0, again.PART_STEPS, 10) for _ in range(2)]
    assert [record for record in found[4:] if record["type"] != "window"] == [{"type": "arrivals", "n": 1}]
    assert whole[6]["first_step"] == 0 and window[12]["first_step"] == 60  # nothing is changed in place
    assert again.part(whole, 1000) == []


def rescored(*verdicts: tuple[str, tuple[int, ...], int], window: int = 10) -> Any:
    told = [SimpleNamespace(kind=kind, ranks=ranks, cause="host_input", step=step) for kind, ranks, step in verdicts]
    return SimpleNamespace(verdicts=told, window=window, windows=24, windows_incomplete=0)


def test_in_a_part_the_rank_is_late_since_the_same_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        again.torch_straggler, "rescore", lambda path: rescored(("straggler", (1,), 139)), raising=False
    )
    (tmp_path / "job.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records()))
    found = list(again.parts(result(), tmp_path))
    assert [line["since"] for line in found] == [max(0, CASE.begins - start) for start in again.PART_STARTS]
    assert all(scoring.hit(line) is not None and scoring.has_to_be_named(line, 0) for line in found)
    assert not list(again.parts(result() | {"counted_steps": 1680}, tmp_path))


def test_made_up_runs_are_like_a_clean_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def made(description: str, like: Path) -> Any:
        asked.append(description)
        return (
            rescored(("straggler", (1,), 109)) if "delay=D1" in description and "rank=1" in description else rescored()
        )

    monkeypatch.setattr(again.torch_straggler, "rescore_synthetic", made, raising=False)
    clean = result() | {"delay": "clean", "share": 0.0, "culprit": None, "injected_ms": None}
    found = list(again.made_up(clean, Path("run")))
    assert len(found) == len(asked) == 2 * 6 + again.QUIET_SEEDS * 5
    assert "windows=42,from_step=80,delay=D1,ms=6,rank=0,seed=5" in asked
    assert len({text.split("seed=")[1] for text in asked}) == len(asked)
    right = [line for line in found if line["delay"] == "D1" and line["culprit"] == 1]
    assert [scoring.windows_to_name(line) for line in right] == [3.0] * 4
    assert scoring.quiet(found).runs == 15 and scoring.quiet(found).alarms == 0


def test_what_was_fed_is_kept_and_not_fed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(again.torch_straggler, "rescore", lambda path: rescored(), raising=False)
    folder, lines = tmp_path / "runs" / "run", tmp_path / "fed.jsonl"
    folder.mkdir(parents=True)
    (folder / "job.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records()))
    found = scoreboard.feed([result()], tmp_path, lines)
    assert len(found) == len(again.PART_STARTS) and scoreboard.read(lines) == found
    assert scoreboard.feed([result()], tmp_path, lines) == found
    assert [row[:2] for row in tables._fed([result(named(119))], found)][:2] == [("runs", "1"), ("parts of them", "4")]


def loop_options(tmp_path: Path, **other: Any) -> Any:
    return options(only=["D6", "clean"], hours=1.0, out=tmp_path, records=tmp_path, **other)


def test_a_scoreboard_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, launched = tmp_path / "results.jsonl", []

    def run(launch: cases.Launch, out: Path) -> Any:
        launched.extend(case.key for case in launch.cases)
        for case in launch.cases:
            yield result() | {"key": case.key}

    monkeypatch.setattr(measure, "run", run)
    assert scoreboard.run(loop_options(tmp_path), lines) == 0
    whole = lines.read_text().splitlines()
    assert len(whole) == len(launched) == len(set(launched)) == 22
    lines.write_text("\n".join(whole[:9]) + "\n")
    launched.clear()
    assert scoreboard.run(loop_options(tmp_path), lines) == 0
    assert sorted(launched) == sorted(json.loads(line)["key"] for line in whole[9:])
    assert len(lines.read_text().splitlines()) == 22


def test_a_launch_that_fails_is_tried_again_and_then_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: Counter[cases.Launch] = Counter()

    def run(launch: cases.Launch, out: Path) -> Any:
        tries[launch] += 1
        if launch.job == "pipeline" or (launch.job == "fsdp" and tries[launch] == 1):
            raise measure.LaunchError("broken")
        for case in launch.cases:
            yield result() | {"key": case.key}

    monkeypatch.setattr(measure, "run", run)
    failed = scoreboard.run(loop_options(tmp_path), tmp_path / "results.jsonl")
    assert failed == sum(launch.job == "pipeline" for launch in tries) == 3
    assert {n for launch, n in tries.items() if launch.job in ("pipeline", "fsdp")} == {2}
    kept = [json.loads(line)["key"] for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert not any("pipeline" in key for key in kept) and any("fsdp" in key for key in kept)


def test_no_launch_begins_that_would_end_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def run(launch: cases.Launch, out: Path) -> Any:
        now[0] += 1000
        for case in launch.cases:
            yield result() | {"key": case.key}

    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(scoreboard.time, "monotonic", lambda: now[0])
    scoreboard.run(loop_options(tmp_path), tmp_path / "results.jsonl")
    assert now[0] == 3000


# ---- Tables ----------------------------------------------------------------------------------------------------------


def test_the_tables_begin_with_the_backward_and_then_rank_0s_duty(tmp_path: Path) -> None:
    duty = result() | {"key": "duty", "delay": "D6", "share": 0.0, "culprit": None, "injected_ms": None}
    replays = {(result()["key"], "mean x 2.0", 1.0): [], ("duty", "mean x 2.0", 1.0): [[0, 69]]}
    out = io.StringIO()
    tables.report([duty, result(named(119))], [], replays, "score", out, markdown=True)
    rows = [line for line in out.getvalue().splitlines() if line.startswith(("| D2:", "| D6:"))]
    assert [[cell.strip() for cell in row.split("|")[2:6]] for row in rows] == [
        ["20%", "1", "1", "0"],
        ["-", "1", "1", "0"],
    ]


def test_a_curve_is_the_share_of_quiet_and_of_late_runs() -> None:
    late = result(named(119))
    missed, silent = late | {"key": "b", "verdicts": []}, late | {"key": "c", "delay": "clean", "culprit": None}
    assert tables.roc([late, missed, silent], {}, tables.OURS, 1.0) == (1.0, 0.5)
    replays = {(late["key"], "mean x 2.0", 2.0): [[1, 120]], ("b", "mean x 2.0", 2.0): [[1, 20]]}
    assert tables.roc([late, missed, silent], replays, "mean x 2.0", 2.0) is None  # of no quiet run is anything known
    replays["c", "mean x 2.0", 2.0] = []
    assert tables.roc([late, missed, silent], replays, "mean x 2.0", 2.0) == (0.0, 0.5)


def test_figures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pip install matplotlib: the bench group draws with it")
    late = result(named(119))
    silent = late | {"key": "c", "delay": "clean", "culprit": None, "injected_ms": None, "verdicts": []}
    replays = {(key, "mean x 2.0", m): [] for key in (late["key"], "c") for m in (1.0, 2.0)}
    tables.draw([late, silent], replays, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000
