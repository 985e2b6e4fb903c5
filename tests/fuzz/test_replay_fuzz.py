"""`straggler report` and `rescore` on records of any content: they end with 0 or 1, and what is printed can be read."""

import contextlib
import io
import json
import random
from pathlib import Path

import pytest
from fuzzing import JSON, SECONDS, damaged, holds
from hypothesis import strategies as some
from recorded import records

from torch_straggler import cli, replay
from torch_straggler.report import JobReport

pytestmark = pytest.mark.timeout(SECONDS + 180)


def command(path: Path, *options: str, name: str = "report") -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as stdout, contextlib.redirect_stderr(io.StringIO()) as stderr:
        status = cli.main([name, str(path), *options])
    assert status == 0 or stderr.getvalue().startswith(f"straggler {name}: ")
    return status, stdout.getvalue()


def reports_or_says_why(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    status, printed = command(path, "--json")
    assert status in (0, 1)
    if printed:
        assert JobReport.from_json(printed).world_size > 0
    assert command(path)[0] == status
    for options in ([], ["--window", "7"]):
        status, printed = command(path, *options, "--json", name="rescore")
        assert json.loads(printed)["windows"] > 0 if status == 0 else status == 1


def test_the_records_as_they_are_give_a_report_of_all_of_them(tmp_path: Path) -> None:
    """Else the properties would be tried on what is refused at once."""
    path = tmp_path / "job.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in records()))
    recording = replay.read(path)
    assert not recording.bad_lines
    report = JobReport.from_json(recording.sessions[-1].replay.report_json())
    assert (report.ranks_reported, report.steps, report.verdict.kind) == (2, 55, "straggler")
    assert report.skew
    assert [row.late for row in report.mitigation] == [0, 40]


def test_records_with_other_values_give_a_report_or_a_line_that_says_why(tmp_path: Path) -> None:
    whole = records()

    @some.composite
    def files(draw: some.DrawFn) -> bytes:
        lines = list(whole)
        for _ in range(draw(some.integers(1, 4))):
            at = draw(some.integers(0, len(lines) - 1))
            lines[at] = draw(damaged(lines[at]))
        return "".join(json.dumps(line) + "\n" for line in lines).encode()

    holds(lambda content: reports_or_says_why(tmp_path / "job.jsonl", content), files())


def test_damaged_bytes_give_a_report_or_a_line_that_says_why(tmp_path: Path) -> None:
    whole = "".join(json.dumps(line) + "\n" for line in records()).encode()

    def change(number: int) -> bytes:
        draws = random.Random(number)
        content = bytearray(whole)
        for _ in range(draws.randrange(1, 6)):
            at = draws.randrange(len(content))
            content[at : at + draws.choice((0, 0, 1, 1, 3, 40))] = draws.randbytes(draws.choice((0, 1, 1, 4)))
        return bytes(content)

    other = some.binary(max_size=200) | some.lists(JSON.map(json.dumps)).map(lambda lines: "\n".join(lines).encode())
    holds(
        lambda content: reports_or_says_why(tmp_path / "job.jsonl", content),
        some.integers(0, 2**63).map(change) | other,
    )
