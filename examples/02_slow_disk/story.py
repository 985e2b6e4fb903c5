"""One slow disk holds a whole job up: which rank's, says the verdict; what another is worth, a run beside it.

Trains with the data of every rank on the same disk; then with those of one rank on a slow disk, and prints the verdict
with its evidence, and by how much shorter the job gets once the disk is replaced. Exit status 0 if that rank was named,
for its input; 1 otherwise.

    python examples/02_slow_disk/story.py
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from slow_disk import slow_disk
from train import CLASSES, SHAPE

TRAIN = Path(__file__).parent / "train.py"
BATCH = 64
SECONDS_AT_MOST = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--slow-rank", type=int, default=1)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--workers", type=int, default=0, choices=(0, 1), help="processes a rank that read")
    parser.add_argument("--megabytes-a-second", type=float, default=8, help="of the slow disk; a step reads 1.8 MB")
    parser.add_argument("--disk", choices=("auto", "loop", "pipe"), default="auto", help="what makes it slow")
    parser.add_argument("--records", type=Path, help="keep the records of the two runs there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slow-disk-") as folder:
        return story(args, Path(folder))


def story(args: argparse.Namespace, folder: Path) -> int:
    records = (args.records or folder / "records").absolute()
    for rank in range(args.ranks):
        write_images(folder / "data" / f"rank{rank}" / "images", args.steps * BATCH, rank)
    print("All disks alike:", flush=True)
    fast = train(args, folder / "data", records / "fast")

    slow_folder = folder / "data" / f"rank{args.slow_rank}"
    fast_folder = slow_folder.rename(folder / "fast")
    slow_folder.mkdir()
    with slow_disk(fast_folder / "images", slow_folder, args.megabytes_a_second, args.disk) as disk:
        print(f"\nThe disk of rank {args.slow_rank} is {disk.what}, {args.megabytes_a_second:g} MB/s:", flush=True)
        slow = train(args, folder / "data", records / "slow", disk.limited)
    return conclusion(args.slow_rank, slow, fast)


def write_images(path: Path, count: int, seed: int) -> None:
    """Images of noise, whose brightness in one colour says what they are."""
    random = numpy.random.default_rng(seed)
    path.parent.mkdir(parents=True)
    with open(path, "wb") as file:
        for label in random.integers(0, CLASSES, count, dtype=numpy.uint8):
            image = random.integers(0, 128, SHAPE, dtype=numpy.uint8)
            image[label % 3] += 60 if label < 3 else 0
            file.write(label.tobytes() + image.tobytes())


@dataclass(frozen=True)
class Trained:
    """What a job said: milliseconds a step, by its script; and its report record."""

    step_ms: float
    report: dict[str, Any]


def train(args: argparse.Namespace, data: Path, records: Path, limited: Any = lambda command: command) -> Trained:
    """Runs the job, its output on ours."""
    command = [str(Path(sys.executable).parent / "straggler"), "run", f"--nproc-per-node={args.ranks}"]
    command += [str(TRAIN), str(data), f"--batch-size={BATCH}", f"--workers={args.workers}"]
    print(shlex.join(command), flush=True)
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "STRAGGLER_DIR": str(records)}
    job = subprocess.Popen(limited(command), env=environment, stdout=subprocess.PIPE, text=True)
    try:
        output, _ = job.communicate(timeout=SECONDS_AT_MOST)
    except BaseException:
        job.terminate()  # torchrun ends its processes
        job.wait()
        raise
    print(output, end="", flush=True)
    said = re.search(r"([\d.]+) ms a step", output)
    if job.returncode != 0 or said is None:
        raise SystemExit(f"the training job ended with status {job.returncode}")
    lines = [json.loads(line) for line in (records / "job.jsonl").read_text().splitlines()]
    return Trained(float(said[1]), [line for line in lines if line["type"] == "report"][-1])


def conclusion(slow_rank: int, slow: Trained, fast: Trained) -> int:
    verdict = slow.report["verdict"]
    lost = slow.report["ranks"][slow_rank]["time_lost_share"] or 0.0
    won = 1 - fast.step_ms / slow.step_ms
    who = f"rank {', '.join(map(str, verdict['ranks']))}" if verdict["ranks"] else "nobody"
    print(f"\nnamed: {who}, cause {verdict['cause']}: {verdict['reason']}")
    print(
        f"a step takes {slow.step_ms:.1f} ms with the slow disk and {fast.step_ms:.1f} ms with another: with the disk "
        f"replaced the job gets {100 * won:.0f} % shorter; the report of the slow run alone had said {100 * lost:.0f} %"
    )
    found = (verdict["kind"], verdict["ranks"], verdict["cause"]) == ("straggler", [slow_rank], "host_input")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
