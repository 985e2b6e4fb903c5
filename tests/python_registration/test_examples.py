"""The examples: scripts that run as they are and have no word of ours in them, and a story that comes true."""

import json
import sys
from pathlib import Path

import pytest
from python_process import Run

EXAMPLES = Path(__file__).parents[2] / "examples"
TRAIN = EXAMPLES / "01_digits" / "train.py"
SLOW_DISK = EXAMPLES / "02_slow_disk"


def test_the_digits_script_trains_under_plain_torchrun(command: Run) -> None:
    assert "straggler" not in TRAIN.read_text().lower()
    done = command("torchrun", "--nproc-per-node=2", str(TRAIN), "--epochs=2", "--width=16")
    assert done.returncode == 0, done.stderr
    assert "accuracy on 297 held-out digits: 0." in done.stdout
    assert "straggler" not in done.stdout + done.stderr


@pytest.mark.parametrize(("disk", "workers"), [("auto", 0), ("pipe", 1)])
def test_the_rank_with_the_slow_disk_is_named_for_its_input(
    disk: str, workers: int, command: Run, tmp_path: Path
) -> None:
    assert "straggler" not in (SLOW_DISK / "train.py").read_text().lower()
    records = tmp_path / "records"
    options = ("--ranks=2", "--steps=40", f"--disk={disk}", f"--workers={workers}", f"--records={records}")
    done = command(Path(sys.executable).name, str(SLOW_DISK / "story.py"), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "named: rank 1, cause host_input" in done.stdout
    assert "with the disk replaced the job gets" in done.stdout
    lines = [json.loads(line) for line in (records / "slow" / "job.jsonl").read_text().splitlines()]
    verdict = next(line for line in reversed(lines) if line["type"] == "verdict" and line["kind"] == "straggler")
    assert (verdict["ranks"], verdict["cause"]) == ([1], "host_input")
    assert verdict["input_ms"] >= 0.8 * verdict["excess_ms"]
    assert "ms in the data loader" in verdict["reason"]
    if verdict["cpu_ms"] is not None:
        assert verdict["cpu_ms"] < 0.2 * verdict["excess_ms"], "it waited, and did not compute"
