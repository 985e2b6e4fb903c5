"""How much time does a late rank cost, with mitigation and without, and what does it do to the weights?

    make bench-mitigation
    .venv/bin/python bench/mitigation/mitigation.py --quick
    .venv/bin/python bench/mitigation/mitigation.py --workloads W1 --schemes plain carry --rounds 3 --out /tmp/w1

A round runs every scheme of a workload once, with the same delays and the same samples; the next round runs them in the
opposite order, with other delays. Each run has processes and a group of its own and a fixed number of steps; its time
is from the end of the warm-up to the end of the last step of the last rank. Into the folder go `runs.jsonl`, a line for
each run as soon as it has ended, `mitigation.json` with a row for each workload and scheme, `table.md`, and
`speed_up.svg` where matplotlib is installed. `--report` makes these three anew from the lines.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "overhead")]

import job  # noqa: E402
import numpy as np  # noqa: E402
import scores  # noqa: E402
import views  # noqa: E402
from common import dump  # noqa: E402
from rank import Run  # noqa: E402
from schemes import SETTINGS  # noqa: E402
from workloads import WORKLOADS  # noqa: E402

QUICK = ("W1", "W2+1", "W9", "W10", "D6", "healthy", "loss", "join", "buffers")


def plan(options: argparse.Namespace) -> Iterator[list[Run]]:
    """Rounds; the plain run of a round is in it always."""
    for name in options.workloads:
        workload = WORKLOADS[name]
        names = dict.fromkeys(("plain", *(options.schemes or workload.schemes)))
        for round_ in range(options.rounds):
            runs = [
                Run(
                    workload=name,
                    scheme=scheme,
                    ranks=options.ranks,
                    steps=options.steps or workload.steps,
                    warm_up=options.warm_up,
                    base_s=options.base_ms / 1e3,
                    seed=options.seed + round_,
                )
                for scheme in names
            ]
            yield runs if round_ % 2 == 0 else runs[::-1]


def limit_s(run: Run) -> float:
    """Far more than a synchronous run takes."""
    delays = np.stack([WORKLOADS[run.workload].delays(run.world, rank) for rank in range(run.ranks)])
    late = delays.sum(axis=2).max(axis=0).sum()
    return 60 + 3 * float((run.warm_up + run.steps) * (run.base_s + 0.05) + late * run.base_s)


def measure(runs: list[Run], folder: Path) -> Iterator[scores.Record]:
    """A round. The plain run's figures come first: the others' bound and bits are compared with it."""
    seen: dict[Run, job.Seen] = {}
    failed: dict[Run, str] = {}
    for run in runs:
        try:
            seen[run] = job.run(run, folder, limit_s(run))
        except job.RunError as error:
            failed[run] = str(error)
    plain = next((seen[run] for run in runs if run.scheme == "plain" and run in seen), None)
    for run in runs:
        if run in seen:
            yield scores.record(run, seen[run], plain)
        else:
            yield {"workload": run.workload, "scheme": run.scheme, "seed": run.seed, "failed": failed[run]}


def report(records: list[scores.Record], out: Path, options: dict[str, Any]) -> None:
    rows = scores.rows(records)
    views.table(rows, sys.stdout, markdown=False)
    print("\n".join(views.remarks(rows)))
    schemes = {name: SETTINGS[name] for name in dict.fromkeys(row["scheme"] for row in rows)}
    versions = {name: _version(name) for name in ("torch_straggler", "torchft")}
    dump(str(out / "mitigation.json"), "mitigation", rows, options | {"schemes": schemes, "versions": versions})
    with (out / "table.md").open("w") as file:
        views.table(rows, file, markdown=True)
    if importlib.util.find_spec("matplotlib") is not None:
        views.draw(records, out / "speed_up.svg")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--schemes", nargs="+", choices=SETTINGS, help="beside plain; default: the workload's own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, help="timed ones; default: the workload's own")
    parser.add_argument("--warm-up", type=int, default=40, help="steps in which nobody is late")
    parser.add_argument("--base-ms", type=float, default=40.0)
    parser.add_argument("--seed", type=int, default=1, help="of the first round; each has the next one")
    parser.add_argument("--out", type=Path, help="default: results beside this file; a new folder if quick")
    parser.add_argument("--quick", action="store_true", help="one round of few steps on 4 ranks, plain and carry alone")
    parser.add_argument("--report", action="store_true", help="runs nothing: from the lines that are there")
    options = parser.parse_args()
    if options.quick:
        options.workloads, options.schemes = list(QUICK), options.schemes or ["plain", "carry"]
        options.rounds, options.ranks, options.steps = 1, 4, 60
        options.out = options.out or Path(tempfile.mkdtemp(prefix="straggler-mitigation-quick-"))
    options.out = options.out or HERE / "results"
    options.out.mkdir(parents=True, exist_ok=True)
    lines = options.out / "runs.jsonl"
    if options.report:
        records = [json.loads(line) for line in lines.read_text().splitlines()]
        report(records, options.out, {"from": str(lines)})
        return 0
    records = []
    with lines.open("w") as file, job.prepared() as folder:
        for runs in plan(options):
            for found in measure(runs, folder):
                records.append(found)
                file.write(json.dumps(found) + "\n")
                file.flush()
                print(found.get("failed") or _line(found), flush=True)
    report(records, options.out, {name: str(value) for name, value in vars(options).items()})
    return 1 if any("failed" in found for found in records) else 0


def _line(found: scores.Record) -> str:
    text = f"{found['workload']:8} {found['scheme']:12} seed {found['seed']}: {found['seconds']:6.1f} s, synchronous "
    text += f"{found['synchronous_s']:.1f}, bound {found['bound_s']:.1f}; identical {found['identical_steps']} of "
    text += f"{found['compared_steps']}; accuracy {found['accuracy']:.3f}"
    if found["mitigation"]:
        text += "; filled {filled_by_proxy}, messages {messages}, armed on {armed_ranks} ranks".format(
            **found["mitigation"]
        )
    return text


if __name__ == "__main__":
    sys.exit(main())
