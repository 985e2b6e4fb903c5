"""`straggler rescore` and `torch_straggler.rescore()`, on records as a job writes them and on synthetic windows."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from torch_straggler import _library

_library.load()
from torch_straggler import _C, noise_like, replay, rescore, rescore_synthetic  # noqa: E402
from torch_straggler.rescore import main  # noqa: E402

SYNTHETIC = "delay=D1,ms=4,rank=2"


def window(rank: int, first: int, late_ms: float) -> dict[str, Any]:
    """A window of one of four ranks; rank 2 is late from step 100 on. Noise of some 0.1 ms, other in each step."""
    noise = [(rank * 7919 + step * 104729) % 211 for step in range(first, first + 10)]
    late = 1000 * late_ms if rank == 2 and first >= 100 else 0
    return {
        "schema": 1,
        "type": "window",
        "first_step": first,
        "stride": 1,
        "steps_found_by": "graph_task",
        "self_us": [int(25_000 + us + late) for us in noise],
        "duration_us": int(270_000 + 10 * late),
        "rank": rank,
    }


def session(ranks: int = 4, **more: Any) -> dict[str, Any]:
    return {"schema": 1, "type": "session", "ranks": list(range(ranks)), "window": 10, "unix_time_ns": 1} | more


def records(folder: Path, late_ms: float, *, steps: int = 300, **more: Any) -> Path:
    lines = [session(**more)]
    for rank in range(4):
        lines.append({"type": "rank", "host": f"node-{rank}", "pid": 1, "clock_domain": "c", "rank": rank})
    lines += [window(rank, first, late_ms) for first in range(0, steps, 10) for rank in range(4)]
    (folder / "job.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


# ---- The library -----------------------------------------------------------------------------------------------------


def test_without_options_it_tells_what_the_job_told(tmp_path: Path) -> None:
    done = rescore(records(tmp_path, 8))
    report = json.loads(replay.read(tmp_path).sessions[-1].replay.report_json())
    assert [verdict.reason for verdict in done.verdicts] == [verdict["reason"] for verdict in report["history"]]
    assert done.verdict.reason == report["verdict"]["reason"]
    assert (done.verdict.kind, done.verdict.ranks, done.verdict.hosts) == ("straggler", (2,), ("node-2",))
    assert done.verdict.since_step == 100
    assert [verdict.step for verdict in done.verdicts] == [129], "after three windows"
    assert (done.ranks, done.window, done.windows) == (4, 10, 30)
    assert (done.windows_abstained, done.windows_incomplete, done.windows_left_out) == (2, 0, 0)


def test_results_are_values_that_cannot_be_changed(tmp_path: Path) -> None:
    done = rescore(records(tmp_path, 8))
    with pytest.raises(dataclasses.FrozenInstanceError):
        done.windows = 0  # type: ignore[misc]


def test_a_lower_gate_names_what_the_job_did_not(tmp_path: Path) -> None:
    path = records(tmp_path, 0.6)
    assert rescore(path).verdict.kind == "none"
    done = rescore(path, relative_gate=0.01, absolute_gate_ms=0.2)
    assert done.verdict.ranks == (2,)
    assert dict(done.options)["relative_gate"] == "0.01"
    assert dict(done.options)["noise_gate"] == "3"


def test_the_rule_of_the_job_stays_unless_another_is_asked_for(tmp_path: Path) -> None:
    path = records(tmp_path, 30, rule="median", multiplier=1.5)
    assert rescore(path).verdict.rule == "median"
    assert dict(rescore(path).options)["multiplier"] == "1.5"
    assert rescore(path, rule="self_time").verdict.rule == "self_time"


@pytest.mark.parametrize(("steps", "windows"), [(5, 59), (20, 15), (50, 6)])
def test_windows_of_another_length(steps: int, windows: int, tmp_path: Path) -> None:
    done = rescore(records(tmp_path, 8), window=steps)
    assert (done.window, done.windows) == (steps, windows)
    assert done.verdict.ranks == (2,)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"relative_gate": 2}, "relative_gate=2 is not valid; allowed: a number from 0 to 1"),
        ({"rule": "mode"}, "rule=mode is not valid; allowed: self_time, mean_multiple, moving_average, or median"),
        ({"absolute_gate_ms": "soon"}, "absolute_gate_ms=soon is not valid; allowed: a number from 0.001 to 1000000"),
        ({"change_windows": 0.5}, "change_windows=0.5 is not valid; allowed: a whole number from 1 to 1000000"),
        ({"window": 0}, "window must be from 1 to 1000 steps"),
        ({"gate": 1}, "'gate' is not known; known are rule, multiplier, absolute_gate_ms"),
    ],
)
def test_what_is_not_allowed_is_refused_with_what_is(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        rescore(records(tmp_path, 8), **options)
    with pytest.raises(ValueError, match=said):
        rescore_synthetic(SYNTHETIC, **options)


def test_records_without_a_window_that_can_be_judged_fail_loudly(tmp_path: Path) -> None:
    """CASES 2.07."""
    with pytest.raises(replay.NoReportError, match=r"holds no job\.jsonl"):
        rescore(tmp_path)
    (tmp_path / "job.jsonl").write_text(json.dumps(session()) + "\n")
    with pytest.raises(replay.NoReportError, match="holds no window and no arrival"):
        rescore(tmp_path)
    arrivals = {"type": "arrivals", "sampling": 1, "operations": [], "rank": 0}
    (tmp_path / "job.jsonl").write_text(json.dumps(session()) + "\n" + json.dumps(arrivals) + "\n")
    with pytest.raises(replay.NoReportError, match=r"no window of .* can be judged"):
        rescore(tmp_path)


def test_what_is_wrong_with_the_file_is_said(tmp_path: Path) -> None:
    path = records(tmp_path, 8)
    with (path / "job.jsonl").open("a") as file:
        file.write('{"type": "window", "rank": 0}\n{"schema": 1, "ty')
    line, last = rescore(path).warnings
    assert "is not used" in line and "is cut off" in last


def test_a_file_with_several_sessions_is_judged_by_its_last(tmp_path: Path) -> None:
    path = records(tmp_path, 8)
    text = (path / "job.jsonl").read_text()
    (path / "job.jsonl").write_text(text + json.dumps(session(1)) + "\n" + text)
    done = rescore(path)
    assert done.verdict.ranks == (2,)
    assert "sessions are in these records" in done.warnings[0]


# ---- Synthetic windows -----------------------------------------------------------------------------------------------


def test_synthetic_windows_go_the_same_way() -> None:
    done = rescore_synthetic("ranks=64," + SYNTHETIC)
    assert (done.ranks, done.windows, done.verdict.ranks) == (64, 50, (2,))
    assert rescore_synthetic(done.source) == done, "the source is the whole description"
    assert rescore_synthetic("ranks=64," + SYNTHETIC + ",seed=2").verdict != done.verdict


def test_synthetic_windows_of_another_length_are_regrouped() -> None:
    assert rescore_synthetic(SYNTHETIC, window=25).windows == 20


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("ranks=1", "ranks=1 is not valid; allowed: a whole number from 2 to 65536"),
        ("delay=D2", "delay=D2 is not valid; allowed: none, D1, D3, D6, D7, D8, or D9"),
        ("ranks", "'ranks' is not valid; allowed: name=value"),
        ("rank=4,delay=D1", "rank=4 is not valid; allowed: a rank of the job, below 4"),
        ("speed=1", "'speed' is not known; known are ranks, windows"),
    ],
)
def test_a_description_that_is_not_allowed_is_refused(description: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rescore_synthetic(description)


def test_synthetic_windows_can_be_like_a_recorded_run(tmp_path: Path) -> None:
    path = records(tmp_path, 0)
    like = dict(part.split("=") for part in noise_like(path).split(","))
    assert (like["ranks"], like["windows"], like["steps"]) == ("4", "29", "10")
    assert float(like["base_ms"]) == pytest.approx(25.1, abs=0.1)
    assert float(like["transfer_ms"]) == pytest.approx(1.9, abs=0.2)
    assert 0.03 < float(like["noise_ms"]) < 0.15
    done = rescore_synthetic("ranks=256,delay=D1,ms=3,rank=100", like=path)
    assert (done.ranks, done.windows, done.verdict.ranks) == (256, 29, (100,))
    assert f"base_ms={like['base_ms']}" in done.source


def test_too_few_windows_tell_no_noise(tmp_path: Path) -> None:
    with pytest.raises(replay.NoReportError, match="too few windows to tell its noise"):
        noise_like(records(tmp_path, 0, steps=100))


# ---- The command -----------------------------------------------------------------------------------------------------


def test_the_command_prints_each_verdict_with_its_step_then_the_last_and_the_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(records(tmp_path, 8))]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("step 129: STRAGGLER rank 2 (node-2) cause=not_attributed +8.")
    assert "\nin the end: STRAGGLER rank 2 (node-2)" in out
    assert "30 windows of 10 steps and 4 ranks judged, 0 incomplete, 2 abstained (7%)" in out
    assert "relative_gate=0.03" in out
    assert err == ""


def test_the_command_takes_every_option_and_prints_one_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {row["name"]: row["default"] for row in _C.detector_options()}
    flags = [part for name, value in values.items() for part in ("--" + name.replace("_", "-"), value)]
    assert main([str(records(tmp_path, 8)), "--json", "--window", "20", *flags]) == 0
    done = json.loads(capsys.readouterr().out)
    assert dict(done["options"]) == values
    assert (done["window"], done["windows"], done["verdict"]["ranks"]) == (20, 15, [2])


def test_the_command_feeds_synthetic_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--synthetic", SYNTHETIC, "--like", str(records(tmp_path, 0))]) == 0
    out = capsys.readouterr().out
    assert "STRAGGLER rank 2" in out and "windows: ranks=4," in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rule", "mode"], "rule=mode is not valid; allowed: self_time"),
        (["--window", "5000"], "window must be from 1 to 1000 steps"),
    ],
)
def test_values_that_are_not_allowed_end_the_command_with_1(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(records(tmp_path, 8)), *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == "" and said in err


def test_records_without_windows_end_the_command_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "holds no job.jsonl" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["a", "b"], ["a", "--synthetic", "x=1"], ["a", "--like", "b"], ["a", "--gate"]]
)
def test_a_command_line_that_is_not_understood_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_help_names_every_option_and_every_part_of_a_description(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    for row in _C.detector_options():
        assert "--" + row["name"].replace("_", "-") in shown
    for row in _C.synthetic_options():
        assert f" {row['name']} {row['text']}" in shown
