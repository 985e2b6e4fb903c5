"""The example is an ordinary script: it runs without us, and has no word of ours in it."""

from pathlib import Path

from python_process import Run

TRAIN = Path(__file__).parents[2] / "examples" / "01_digits" / "train.py"


def test_the_digits_script_trains_under_plain_torchrun(command: Run) -> None:
    assert "straggler" not in TRAIN.read_text().lower()
    done = command("torchrun", "--nproc-per-node=2", str(TRAIN), "--epochs=2", "--width=16")
    assert done.returncode == 0, done.stderr
    assert "accuracy on 297 held-out digits: 0." in done.stdout
    assert "straggler" not in done.stdout + done.stderr
