"""Who, since when, how much, why: real runs with known culprits, scored, beside the rules of other tools.

    make scoreboard
    .venv/bin/python bench/scoreboard/scoreboard.py --quick
    .venv/bin/python bench/scoreboard/scoreboard.py --seeds score --hours 3
    .venv/bin/python bench/scoreboard/scoreboard.py --only 'D2 20% ddp 4' --out /tmp/d2
    .venv/bin/python bench/scoreboard/scoreboard.py --report

Into the folder go `results-SEEDS.jsonl`, a line for each run as soon as its launch has ended; `replays-SEEDS.jsonl`,
whom each rule names in it; `fed-SEEDS.jsonl`, what ours says of parts of it, and of runs made up with its noise;
`table-SEEDS.md` and `figure-SEEDS.svg`. What was recorded of the runs, which all of them are fed with, goes into
`--records`. A run that is in the results is not run again: a scoreboard that was stopped goes on. `--report` runs
nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import again
import baselines
import cases
import measure
import scoring
import tables
from cases import SEEDS, Case
from scoring import Result
from seen import Seen, load

HERE = Path(__file__).resolve().parent
MULTIPLIERS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
QUICK = ("D2 20%", "D6", "D3 20%", "clean")
QUICK_STEPS = 120
TRIES = 2  # of a launch that fails


def plan(options: argparse.Namespace, done: set[str]) -> list[cases.Launch]:
    wanted = [case for case in cases.matrix(cases.seeds(options.seeds, options.rounds)) if _is_wanted(case, options)]
    if options.quick:
        wanted = [dataclasses.replace(case, steps=QUICK_STEPS, begins=40) for case in wanted]
    return cases.launches((case for case in wanted if case.key not in done), options.sessions)


def _is_wanted(case: Case, options: argparse.Namespace) -> bool:
    if options.quick:
        last = case.culprit in (None, case.ranks - 1)
        return case.ranks == max(2, min(cases.LAYOUTS[case.job])) and last and case.key.startswith(QUICK)
    return not options.only or any(part in case.key for part in options.only)


def run(options: argparse.Namespace, lines: Path) -> int:
    """Runs what is not in the results until the time is over; gives the number of launches that failed."""
    done = {result["key"] for result in read(lines)}
    launches, begun, failed, longest = plan(options, done), time.monotonic(), 0, 0.0
    print(f"{sum(len(launch.cases) for launch in launches)} runs in {len(launches)} launches to do, {len(done)} done")
    for number, launch in enumerate(launches, start=1):
        spent = time.monotonic() - begun
        if spent + longest > 3600 * options.hours:
            print(f"{len(launches) - number + 1} launches are left for another time")
            break
        for left in reversed(range(TRIES)):
            try:
                found = list(measure.run(launch, options.records))
            except measure.LaunchError as error:
                print(error, flush=True)
                failed += not left
                continue
            with lines.open("a") as file:
                file.writelines(json.dumps(result) + "\n" for result in found)
            for result in found:
                print(f"{number} of {len(launches)}: {_line(result)}", flush=True)
            break
        longest = max(longest, time.monotonic() - begun - spent)
    return failed


def _line(result: Result) -> str:
    named = tables.first_named(result, tables.OURS, {})
    verdict = "right" if tables.is_right(result, named) else "WRONG"
    who = ", ".join(f"rank {rank} at step {step:.0f}" for rank, step in named) or "nobody"
    return f"{verdict:5} {result['key']}: {who} named; since step {result['since']}, step {result['step_ms']} ms"


def read(lines: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []


# ---- Rules on the recorded runs --------------------------------------------------------------------------------------


def replay(results: Sequence[Result], records: Path, lines: Path) -> tables.Replays:
    """Whom each rule, and ours, names in each run, at each multiplier. What is in the lines is not calculated again,
    and is all there is of a run whose records are gone."""
    known = {(line["key"], line["rule"]): line["named"] for line in read(lines)}
    with lines.open("a") as file:
        for result in results:
            folder = records / "runs" / result["folder"]
            wanted = [rule for rule in (tables.OURS, *baselines.RULES) if (result["key"], rule) not in known]
            if not wanted or not (folder / "seen.npz").exists():
                continue
            seen = load(folder / "seen.npz")
            for rule in wanted:
                found = {str(multiplier): _named(rule, multiplier, result, seen, folder) for multiplier in MULTIPLIERS}
                known[result["key"], rule] = found
                file.write(json.dumps({"key": result["key"], "rule": rule, "named": found}) + "\n")
    return {(key, rule, float(m)): named for (key, rule), at in known.items() for m, named in at.items()}


def _named(rule: str, multiplier: float, result: Result, seen: Seen, folder: Path) -> list[list[float]]:
    """(rank, step of the job) of each naming."""
    if rule != tables.OURS:
        return [[naming.rank, naming.step] for naming in baselines.named(rule, seen, result["job"], multiplier)]
    return [[rank, round(scoring.job_step(result, step), 1)] for rank, step in again.named(folder, multiplier)]


def feed(results: Sequence[Result], records: Path, lines: Path) -> list[Result]:
    """What ours says of parts of the runs, and of runs made up with the noise of the clean ones. As with `replay`, what
    is in the lines is not fed again."""
    known = read(lines)
    done = {line["of"] for line in known}
    with lines.open("a") as file:
        for result in results:
            folder = records / "runs" / result["folder"]
            if result["key"] in done or not (folder / "job.jsonl").exists():
                continue
            found = list(again.parts(result, folder))
            if found and result["delay"] == "clean":
                found += again.made_up(result, folder)
            found = [line | {"of": result["key"]} for line in found]
            file.writelines(json.dumps(line) + "\n" for line in found)
            known += found
    return known


def report(options: argparse.Namespace, lines: Path) -> None:
    results = read(lines)
    if not results:
        print("no runs to report of")
        return
    replays = replay(results, options.records, options.out / f"replays-{options.seeds}.jsonl")
    fed = feed(results, options.records, options.out / f"fed-{options.seeds}.jsonl")
    tables.report(results, fed, replays, options.seeds, sys.stdout, markdown=False)
    with (options.out / f"table-{options.seeds}.md").open("w") as file:
        tables.report(results, fed, replays, options.seeds, file, markdown=True)
    if importlib.util.find_spec("matplotlib") is not None:
        tables.draw(results, replays, options.out / f"figure-{options.seeds}.svg")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", choices=SEEDS, default="score", help="thresholds are chosen on tune, gates on score")
    parser.add_argument("--rounds", type=int, default=1, help="seeds of them")
    parser.add_argument("--hours", type=float, default=3.0, help="no launch begins that would end later")
    parser.add_argument("--sessions", type=int, default=cases.SESSIONS_A_LAUNCH, help="of a launch")
    parser.add_argument("--only", nargs="+", help="runs whose name contains one of these")
    parser.add_argument("--quick", action="store_true", help="two minutes: few delays on the fewest ranks, few steps")
    parser.add_argument("--report", action="store_true", help="runs nothing: from what is there")
    parser.add_argument("--out", type=Path, help="default: results beside this file; a new folder if quick")
    parser.add_argument("--records", type=Path, help="default: records/scoreboard, which git ignores")
    options = parser.parse_args()
    quick = Path(tempfile.mkdtemp(prefix="straggler-scoreboard-quick-")) if options.quick else None
    options.out = options.out or quick or HERE / "results"
    options.records = options.records or quick or HERE.parents[1] / "records" / "scoreboard"
    options.out.mkdir(parents=True, exist_ok=True)
    lines = options.out / f"results-{options.seeds}.jsonl"
    failed = 0 if options.report else run(options, lines)
    report(options, lines)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
