"""The command `straggler`: what it says and how it ends when something is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from python_process import Run

from torch_straggler import _library, cli, launch

_library.load()
from torch_straggler import _C, replay  # noqa: E402


class CountingReplay:
    """Stands for `_C.Replay`, so that what a window holds does not matter here."""

    def __init__(self, session: dict[str, Any]) -> None:
        self.windows = 0

    def line(self, line: dict[str, Any]) -> bool:
        if line["type"] != "window":
            return False
        if "rank" not in line:
            raise ValueError("the window has no field rank")
        self.windows += 1
        return True

    def report_json(self) -> str:
        return json.dumps({"windows": self.windows, **COMPARED})

    def text(self) -> str:
        return f"table of {self.windows} windows"


COMPARED = {"world_size": 2, "steps": 5, "skew": []}

SESSION = b'{"schema": 1, "type": "session"}\n'
WINDOW = b'{"schema": 1, "type": "window", "rank": 0}\n'


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(replay._C, "Replay", CountingReplay)
    return tmp_path


def write(folder: Path, *lines: bytes) -> str:
    (folder / "job.jsonl").write_bytes(b"".join(lines))
    return str(folder)


# ---- report ----------------------------------------------------------------------------------------------------------


def test_report_prints_the_table_or_the_record(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(records, SESSION, WINDOW, WINDOW, b'{"schema": 1, "type": "verdict"}\n')
    assert cli.main(["report", path]) == 0
    assert capsys.readouterr() == ("table of 2 windows\n", "")
    assert cli.main(["report", path + "/job.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"windows": 2, **COMPARED}


def test_a_last_line_that_is_cut_off_is_said_and_the_rest_is_used(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", write(records, SESSION, WINDOW, b'{"schema": 1, "ty')]) == 0
    out, err = capsys.readouterr()
    assert out == "table of 1 windows\n"
    assert "line 3, the last, is cut off" in err


def test_bad_lines_are_named_and_counted(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = [b"{\n", b"[1]\n", b'{"type": "window"}\n', b"\xff\xfe\n", b"null\n", b"7\n"]
    assert cli.main(["report", write(records, WINDOW, SESSION, WINDOW, b"\n", *bad)]) == 0
    out, err = capsys.readouterr()
    assert out == "table of 1 windows\n"
    assert "line 1 is not used: a record that belongs to no session" in err
    assert "line 5 is not used: not JSON" in err
    assert "line 6 is not used: not a record" in err
    assert "line 7 is not used: the window has no field rank" in err
    assert "7 lines are not used in all" in err


def test_lines_that_no_job_writes_cost_neither_memory_nor_the_rest(
    records: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "MAX_LINE", 100)
    long, deep = b'{"type": "' + b"x" * 1000 + b'"}\n', b"[" * 99 + b"\n"
    assert cli.main(["report", write(records, SESSION, WINDOW, long, WINDOW, deep, WINDOW)]) == 0
    out, err = capsys.readouterr()
    assert out == "table of 3 windows\n"
    assert "line 3 is not used: not JSON" in err and "line 5 is not used: not JSON" in err
    monkeypatch.setattr(replay, "MAX_LINE", 1 << 20)
    assert cli.main(["report", write(records, SESSION, WINDOW, b"[" * 100_000 + b"\n", WINDOW)]) == 0
    out, err = capsys.readouterr()
    assert out == "table of 2 windows\n"
    assert "line 3 is not used: nested too deeply" in err


def test_lines_of_another_schema_are_not_used(records: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = WINDOW.replace(b": 1,", b": 2,", 1)
    assert cli.main(["report", write(records, SESSION, WINDOW, later)]) == 0
    out, err = capsys.readouterr()
    assert out == "table of 1 windows\n"
    assert "line 3 is not used: it has schema 2, this torch_straggler reads schema 1" in err


def test_the_report_is_of_the_last_session_with_a_measurement(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", write(records, SESSION, WINDOW, SESSION, SESSION, WINDOW, WINDOW, SESSION)]) == 0
    out, err = capsys.readouterr()
    assert out == "table of 2 windows\n"
    assert err == "straggler report: 2 sessions are in these records; the report is of the last\n"


def test_what_follows_a_bad_session_line_is_not_taken_for_the_session_before(
    records: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class ParticularReplay(CountingReplay):
        def __init__(self, session: dict[str, Any]) -> None:
            super().__init__(session)
            if "ranks" in session:
                raise ValueError("the session has no rank")

    monkeypatch.setattr(replay._C, "Replay", ParticularReplay)
    bad = b'{"schema": 1, "type": "session", "ranks": []}\n'
    assert cli.main(["report", write(records, SESSION, WINDOW, bad, WINDOW, WINDOW)]) == 0
    out, err = capsys.readouterr()
    assert out == "table of 1 windows\n"
    assert "line 3 is not used: the session has no rank" in err
    assert "line 4 is not used: a record that belongs to no session" in err


# Two ranks on one clock, in one group, and no window: what is known of the arrivals is all there is to report from.
MEETING = b"""{"schema": 1, "type": "session", "ranks": [0, 1], "window": 10}
{"schema": 1, "type": "rank", "host": "h", "pid": 1, "clock_domain": "c", "rank": 0}
{"schema": 1, "type": "rank", "host": "h", "pid": 2, "clock_domain": "c", "rank": 1}
{"schema": 1, "type": "group", "name": "0", "desc": "", "backend": "gloo", "ranks": [0, 1], "rank": 0}
"""


def arrivals(rank: int, first: int) -> bytes:
    """The record of a rank's arrivals at twenty operations of the group, from number `first` on."""
    numbers = range(first, first + 20)
    of_group = {"group": 0x350CA8AF, "kind": "all_reduce", "completed_ns": None}  # the hash of "0"
    operations = [of_group | {"collective_seq_id": number, "arrival_ns": 1000 * number} for number in numbers]
    line = {"schema": 1, "type": "arrivals", "rank": rank, "sampling": 1, "operations": operations}
    return json.dumps(line).encode() + b"\n"


def test_arrivals_without_a_window_are_enough_for_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", write(tmp_path, MEETING, arrivals(0, 0), arrivals(1, 0))]) == 0
    assert "of 2 ranks" in capsys.readouterr().out


def test_records_in_which_no_operation_matches_fail_loudly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CASES 2.07: what there is is shown, with a line and an exit status that cannot be overlooked."""
    assert cli.main(["report", write(tmp_path, MEETING, arrivals(0, 0), arrivals(1, 100))]) == 1
    out, err = capsys.readouterr()
    assert "of 2 ranks" in out
    assert "nothing could be compared" in err


@pytest.mark.parametrize("lines", [[], [SESSION], [b"garbage\n"], [WINDOW]])
def test_records_without_a_window_are_an_error(
    lines: list[bytes], records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", write(records, *lines)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "holds no window and no arrival" in err


def test_no_folder_and_no_records_are_errors_that_name_the_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(tmp_path / "missing")]) == 1
    assert "missing does not exist; a job writes its records to the folder that STRAGGLER_DIR names" in (
        capsys.readouterr().err
    )
    assert cli.main(["report", str(tmp_path)]) == 1
    assert "holds no job.jsonl" in capsys.readouterr().err


# ---- settings, usage -------------------------------------------------------------------------------------------------


def test_settings_shows_every_setting_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["settings"]) == 0
    shown = capsys.readouterr().out
    names = [str(row["name"]) for row in _C.settings()]
    assert names and all(shown.count(f" {name} ") == 1 for name in names)


def test_settings_that_are_not_valid_are_said(command: Run) -> None:
    done = command("straggler", "settings", STRAGGLER_WINDOW="many")
    assert done.returncode == 1
    assert "STRAGGLER_WINDOW" in done.stderr and "many" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["explain"], ["report"], ["report", "a", "b"], ["settings", "--all"]])
def test_a_command_line_that_is_not_understood_is_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2


# ---- run -------------------------------------------------------------------------------------------------------------


def test_run_takes_every_option_of_torchrun_and_inject() -> None:
    options = launch.argument_parser().parse_args(
        ["--standalone", "--nproc-per-node=4", "--inject", "a", "--inject=b", "-m", "package.module", "--inject", "c"]
    )
    assert (options.nproc_per_node, options.standalone, options.module) == ("4", True, True)
    assert options.inject == ["a", "b"]
    assert (options.training_script, options.training_script_args) == ("package.module", ["--inject", "c"])


@pytest.mark.parametrize(
    ("settings", "arguments", "status", "said"),
    [
        ({}, ["--inject", "rank=2,where=backward,ms=soon"], 2, "ms=soon is not valid; allowed: a number of"),
        ({}, ["--inject", ""], 2, "no rule in it"),
        ({"STRAGGLER_WINDOWS": "1"}, [], 1, "STRAGGLER_WINDOWS"),
        ({"STRAGGLER_INTERCEPT": "mpi"}, [], 1, "STRAGGLER_INTERCEPT"),
        ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, [], 1, "unset it"),
    ],
)
def test_what_is_wrong_is_said_before_any_process_is_started(
    settings: dict[str, str], arguments: list[str], status: int, said: str, command: Run, tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text("open('started', 'w')")
    done = command("straggler", "run", *arguments, "script.py", **settings)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "started").exists()
