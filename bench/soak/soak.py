"""A million collectives on four ranks: does memory grow, is a record lost uncounted, do results stay right?

    .venv/bin/python bench/soak/soak.py --json bench/soak/results/soak.json

The same job runs on straggler_gloo, with records, and then for a share of the time on gloo, as a control: what grows
there is not ours. `--seconds` ends it earlier than after all its collectives; the results say how many there were.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "overhead")]

AGREE = 200  # collectives after which the ranks agree on whether to go on
SAMPLE_SECONDS = 0.5


# ---- A rank ----------------------------------------------------------------------------------------------------------


def rank_main() -> None:
    """Issues collectives until there are enough, or the time is over; tells how many, and checks every result."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    wanted, seconds = int(os.environ["COLLECTIVES"]), float(os.environ["SECONDS"])
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)
    dist.init_process_group(
        os.environ["BACKEND"], store=store, rank=rank, world_size=world, timeout=timedelta(seconds=60)
    )
    one, gathered, stop = torch.ones(1), torch.zeros(world), torch.zeros(1)
    total = world * (world + 1) / 2
    issued = wrong = 0
    one.fill_(rank + 1)
    begun = time.monotonic()
    while issued < wanted and not stop.item():
        # Tens of: eight all_reduce, one of them asynchronous, and two broadcasts; then an all_gather, and one to agree.
        for _ in range(min(AGREE, wanted - issued) // 10):
            for number in range(8):
                if number == 4:
                    dist.all_reduce(one, async_op=True).wait()
                else:
                    dist.all_reduce(one)
                wrong += one.item() != total
                one.fill_(rank + 1)
            for root in (1, 2):
                dist.broadcast(one.fill_(rank + 1), root % world)
                wrong += one.item() != root % world + 1
            one.fill_(rank + 1)
            issued += 10
        dist.all_gather_into_tensor(gathered, one)
        wrong += gathered.sum().item() != total
        stop.fill_(rank == 0 and time.monotonic() - begun > seconds)
        dist.all_reduce(stop)
        issued += 2
    took = time.monotonic() - begun
    dist.destroy_process_group()
    print(json.dumps({"issued": issued, "wrong": wrong, "seconds": took}), flush=True)


# ---- The job ---------------------------------------------------------------------------------------------------------


def resident_mb(process: int) -> float:
    fields = Path(f"/proc/{process}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def run(backend: str, ranks: int, collectives: int, seconds: float) -> dict[str, Any]:
    """Runs the job; gives what its ranks told, memory by rank over time, and the count of records."""
    import torch.distributed as dist
    from flatness import slope
    from record_count import RecordCount

    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    with tempfile.TemporaryDirectory() as folder:
        records = [RecordCount(Path(folder) / f"rank-{rank:05}.jsonl") for rank in range(ranks)]
        job = {
            "WORLD_SIZE": str(ranks),
            "MASTER_PORT": str(store.port),
            "BACKEND": backend,
            "COLLECTIVES": str(collectives),
            "SECONDS": str(seconds),
            "STRAGGLER_DIR": folder,
            "OMP_NUM_THREADS": "1",
        }
        processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--rank"],
                env={**os.environ, **job, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        times: list[float] = []
        memory: list[list[float]] = []
        begun = time.monotonic()
        while all(process.poll() is None for process in processes):
            time.sleep(SAMPLE_SECONDS)
            for count in records:
                count.read()
            try:
                sample = [resident_mb(process.pid) for process in processes]
            except (OSError, IndexError):
                break  # one of them has ended
            times.append(time.monotonic() - begun)
            memory.append(sample)
        told = [json.loads(process.communicate(timeout=60)[0].splitlines()[-1]) for process in processes]
        per_million = 1e6 / (told[0]["issued"] / told[0]["seconds"])  # seconds
        # The start (imports) and the end (the report) are no part of it.
        inside = [index for index, at in enumerate(times) if times[-1] - told[0]["seconds"] <= at <= times[-1] - 1]
        rows = []
        for rank in range(ranks):
            series = [memory[index][rank] for index in inside]
            try:
                grows = [part * per_million for part in slope([times[index] for index in inside], series)]
            except ValueError:
                grows = None  # too short a run
            rows.append({"rank": rank, "first_mb": series[0], "last_mb": series[-1], "mb_per_million": grows})
        result = {
            "backend": backend,
            "collectives": told[0]["issued"],
            "seconds": told[0]["seconds"],
            "per_second": told[0]["issued"] / told[0]["seconds"],
            "wrong_results": sum(rank["wrong"] for rank in told),
            "memory": rows,
            "memory_mb": [[round(value, 2) for value in sample] for sample in memory[:: max(1, len(memory) // 200)]],
        }
        if backend.startswith("straggler"):
            lines = (Path(folder) / "job.jsonl").read_text().splitlines()
            report = [line for line in map(json.loads, lines) if line["type"] == "report"][-1]
            for rank, count in enumerate(records):
                count.end(told[rank]["issued"])
                rows[rank] |= {
                    "issued": told[rank]["issued"],
                    "recorded": count.recorded,
                    "missing": count.missing,
                    "counted_as_dropped": report["ranks"][rank]["records_dropped"],
                    "out_of_order": count.disorder,
                }
            result["collectives_of_the_report"] = report["collectives"]
    return result


def faults(result: dict[str, Any]) -> list[str]:
    """What must not be, a sentence each."""
    found = []
    if result["wrong_results"]:
        found.append(f"{result['wrong_results']} results are wrong")
    if result["per_second"] < 1000:
        found.append(f"{result['per_second']:.0f} collectives a second are fewer than 1,000")
    for row in result["memory"]:
        if row["mb_per_million"] is None:
            found.append(f"rank {row['rank']}: too few samples to say whether it grows")
        elif row["mb_per_million"][1] > 1:
            found.append(f"rank {row['rank']} grows by {row['mb_per_million'][0]:.1f} MB a million, surely more than 1")
        if "issued" in row and (row["recorded"] + row["counted_as_dropped"] != row["issued"] or row["out_of_order"]):
            found.append(f"rank {row['rank']}: recorded and dropped do not add up to issued, or are out of order")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--collectives", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="ends earlier; of straggler_gloo")
    parser.add_argument("--control", type=float, default=0.25, help="share of it that gloo gets")
    parser.add_argument("--json", default=None, help="where the results go")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        rank_main()
        return 0

    from common import dump

    results = []
    for backend, share in (("straggler_gloo", 1.0), ("gloo", options.control)):
        result = run(backend, options.ranks, int(share * options.collectives), share * options.seconds)
        results.append(result)
        print(f"{backend}: {result['collectives']} collectives a rank, {result['per_second']:.0f} a second")
        for row in result["memory"]:
            text = f"  rank {row['rank']}: {row['first_mb']:.1f} to {row['last_mb']:.1f} MB"
            if row["mb_per_million"]:
                text += ", {:+.2f} MB a million [{:+.2f}, {:+.2f}]".format(*row["mb_per_million"])
            if "issued" in row:
                text += f"; {row['issued']} issued = {row['recorded']} recorded + {row['counted_as_dropped']} dropped"
            print(text)
    found = faults(results[0])
    print("\n".join(found) if found else "nothing is lost uncounted, nothing surely grows")
    if options.json:
        dump(options.json, "soak", results, {"ranks": options.ranks, "records": True})
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
