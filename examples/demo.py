"""`make demo`: trains the digits on four ranks, one of them slowed down, and checks that this rank is named.

`DEMO_RANK` chooses the rank: a number (default 2), `random` (drawn here, told afterwards), or `none` (then nobody may
be named). Exit status 0 if that rank was named and no other; 1 otherwise, with one line that says what was found.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

RANKS = 4
DELAY_MS = 8
SECONDS_AT_MOST = 300
TRAIN = Path(__file__).parent / "01_digits" / "train.py"


def main() -> int:
    choice = os.environ.get("DEMO_RANK", "2")
    try:
        slow_rank = chosen_rank(choice)
    except ValueError:
        print(f"demo: DEMO_RANK={choice} is not valid; allowed: 0 to {RANKS - 1}, random, none", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="straggler-demo-") as records:
        status = train(slow_rank, records, secret=choice == "random")
        if status != 0:
            print(f"demo: the training job ended with status {status}", file=sys.stderr)
            return 1
        verdict = last_verdict(Path(records) / "job.jsonl")
    if choice == "random":
        print(f"demo: the rank that was slowed down is {slow_rank}")
    if verdict is None:
        print("demo: the job wrote no report", file=sys.stderr)
        return 1
    named = set(verdict["ranks"]) if verdict["kind"] == "straggler" else set()
    wanted = set() if slow_rank is None else {slow_rank}
    if named == wanted:
        return 0
    print(f"demo: wanted {text(wanted)} named, found {text(named)} ({verdict['reason']})", file=sys.stderr)
    return 1


def chosen_rank(choice: str) -> int | None:
    """The rank to slow down, or None. Raises ValueError for a choice that is not allowed."""
    if choice == "none":
        return None
    rank = random.randrange(RANKS) if choice == "random" else int(choice)
    if not 0 <= rank < RANKS:
        raise ValueError
    return rank


def train(slow_rank: int | None, records: str, secret: bool) -> int:
    """Runs the job, its output on ours. Returns its exit status."""
    command = [str(Path(sys.executable).parent / "straggler"), "run", f"--nproc-per-node={RANKS}"]
    if slow_rank is not None:
        command.append(f"--inject=rank={slow_rank},where=backward,ms={DELAY_MS}")
    command.append(str(TRAIN))
    shown = shlex.join(command)
    print(shown.replace(f"rank={slow_rank},", "rank=?,") if secret else shown, flush=True)
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "STRAGGLER_DIR": records}
    job = subprocess.Popen(command, env=environment)
    try:
        return job.wait(timeout=SECONDS_AT_MOST)
    except subprocess.TimeoutExpired:
        print(f"demo: the training job took longer than {SECONDS_AT_MOST} s and is ended", file=sys.stderr)
        job.terminate()  # torchrun ends its processes
        return job.wait()


def last_verdict(path: Path) -> dict | None:
    """The verdict in the last report record of the job; None if there is no such record."""
    if not path.exists():
        return None
    found = None
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["type"] == "report":
            found = record["verdict"]
    return found


def text(ranks: set[int]) -> str:
    return "rank " + ", ".join(map(str, sorted(ranks))) if ranks else "nobody"


if __name__ == "__main__":
    sys.exit(main())
