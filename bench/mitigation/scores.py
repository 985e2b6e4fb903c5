"""From what the ranks of a run saw to its figures, and from the runs of a scheme to a row. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from job import Seen
from numpy.typing import NDArray
from rank import Run
from workloads import WORKLOADS

Record = dict[str, Any]  # a line of the results: a run
Row = dict[str, Any]  # a line of the table: a scheme on a workload
FAR = 3  # digits of seconds


def record(run: Run, seen: Seen, plain: Seen | None) -> Record:
    """`plain` is the plain run of the same round, which the bound is taken from and that bits are compared with."""
    timed = slice(run.warm_up, None)
    begun = seen.ends[:, run.warm_up - 1].min()
    healthy = healthy_s(run, seen)
    synchronous, bound = bounds(healthy_s(run, plain or seen), (plain or seen).late[:, timed])
    identical, compared = identical_steps(seen.hashes[:, timed], ~np.isnan(seen.ends[:, timed]))
    ledgers = [told["ledger"] for told in seen.told if told["ledger"] is not None]
    return {
        "workload": run.workload,
        "scheme": run.scheme,
        "ranks": run.ranks,
        "steps": run.steps,
        "warm_up": run.warm_up,
        "base_ms": 1e3 * run.base_s,
        "seed": run.seed,
        "seconds": round(float(np.nanmax(seen.ends) - begun), FAR),
        "closing_s": round(max(told["closed"] for told in seen.told) - float(np.nanmax(seen.ends)), FAR),
        "healthy_ms": round(1e3 * healthy, FAR),
        "beyond_base": round(1 - run.base_s * WORKLOADS[run.workload].base / healthy, 4),
        "own_share": round(statistics.fmean(told["own_processor_s"] for told in seen.told) / healthy, 4),
        "synchronous_s": round(synchronous, FAR),
        "bound_s": round(bound, FAR),
        "identical_steps": identical,
        "compared_steps": compared,
        "as_plain_steps": int((seen.hashes == plain.hashes).all(axis=0).sum())
        if plain
        else None,  # of all, warm-up too
        "accuracy": round(statistics.fmean(told["accuracy"] for told in seen.told), 4),
        "test_loss": round(statistics.fmean(told["test_loss"] for told in seen.told), 4),
        "lead_steps": lead_steps(seen.ends[:, timed], seen.late[:, timed]),
        "mitigation": mitigation(ledgers) if ledgers else None,
        "lines": seen.lines,
    }


def healthy_s(run: Run, seen: Seen) -> float:
    """Mean step of the second half of the warm-up."""
    half = run.warm_up // 2
    return float((seen.ends[:, run.warm_up - 1] - seen.ends[:, half - 1]).mean() / (run.warm_up - half))


def bounds(healthy: float, late: NDArray[np.float64]) -> tuple[float, float]:
    """What a synchronous run takes, and below what no scheme can come that lets every rank do every step; seconds.

    A rank's own time in a step is x, the healthy step and its delay. Synchronous: sum over steps of the largest x of
    any rank. Bound: the largest of any rank's sum. Two ranks, healthy 1, late 3 in the first and in the second step:
    synchronous 4 + 4 = 8; bound 4 + 1 = 5.
    """
    own = healthy + late
    return float(own.max(axis=0).sum()), float(own.sum(axis=1).max())


def identical_steps(hashes: NDArray[np.uint32], ran: NDArray[np.bool_]) -> tuple[int, int]:
    """Steps after which the weights of all ranks that ran it are equal to the bit, of how many."""
    equal = sum(len(set(hashes[ran[:, step], step])) == 1 for step in range(hashes.shape[1]))
    return equal, hashes.shape[1]


def lead_steps(ends: NDArray[np.float64], late: NDArray[np.float64]) -> list[float]:
    """By how many steps the others were ahead of a rank when it ended a step in which it was late: median, largest.

    Of each such step, that one completed too: how many more the slowest of the others had completed.
    """
    leads = []
    for rank, step in zip(*np.nonzero(late > 0), strict=True):
        if not np.isnan(ends[rank, step]):
            others = np.delete(ends, rank, axis=0)
            leads.append(int((others <= ends[rank, step]).sum(axis=1).min()) - int(step) - 1)
    return [float(statistics.median(leads)), float(max(leads))] if leads else []


def mitigation(ledgers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of all ranks together; slots of gradients are counted once for the group."""
    buckets = [[sum(bucket[name] for bucket in ledger["buckets"]) for ledger in ledgers] for name in COUNTS]
    counts = {name: sum(values) for name, values in zip(COUNTS, buckets, strict=True)}
    slots = max(buckets[0])
    messages = sum(ledger["messages"] for ledger in ledgers)
    return {
        "armed_ranks": sum(ledger["armed"] for ledger in ledgers),
        "reasons": sorted({ledger["reason"] for ledger in ledgers if ledger["reason"]}),
        "slots": slots,
        "filled_by_proxy": sum(ledger["filled_by_proxy"] for ledger in ledgers),
        **counts,
        "staleness_max": max((b["staleness_max"] for ledger in ledgers for b in ledger["buckets"]), default=0),
        "messages": messages,
        "messages_per_10000_slots": round(1e4 * messages / slots, 2) if slots else None,
        "grace_ms": [ledger["grace_ms"] for ledger in ledgers],
        "saved_ms": round(sum(ledger["saved_ms"] for ledger in ledgers), 1),
    }


COUNTS = ("produced", "on_time", "late", "dropped", "pending", "staleness_sum")


# ---- Rows ------------------------------------------------------------------------------------------------------------


def rows(records: Sequence[Record]) -> list[Row]:
    """A row for each workload and scheme, in the order in which they first come."""
    keys = dict.fromkeys((found["workload"], found["scheme"]) for found in records)
    order = {name: number for number, name in enumerate(dict.fromkeys(workload for workload, _ in keys))}
    return [_row(records, *key) for key in sorted(keys, key=lambda key: order[key[0]])]


def _row(records: Sequence[Record], workload: str, scheme: str) -> Row:
    every = [found for found in records if (found["workload"], found["scheme"]) == (workload, scheme)]
    runs = [found for found in every if "failed" not in found]
    row: Row = {
        "workload": workload,
        "scheme": scheme,
        "runs": len(runs),
        "failed": [found["failed"].splitlines()[0] for found in every if "failed" in found],
    }
    if not runs:
        return row
    plain = {found["seed"]: found for found in records if found["workload"] == workload and found["scheme"] == "plain"}
    pairs = [(found, plain[found["seed"]]) for found in runs if "seconds" in plain.get(found["seed"], {})]
    ups = [base["seconds"] / found["seconds"] for found, base in pairs]
    limits = [base["synchronous_s"] / base["bound_s"] for _, base in pairs]
    told = [found["mitigation"] for found in runs if found["mitigation"]]
    return row | {
        "seconds": _spread(found["seconds"] for found in runs),
        "healthy_ms": _spread(found["healthy_ms"] for found in runs),
        "beyond_base": _spread(found["beyond_base"] for found in runs),
        "own_share": _spread(found["own_share"] for found in runs),
        "plain_of_synchronous": _spread(found["seconds"] / found["synchronous_s"] for found in runs)
        if scheme == "plain"
        else None,
        "speed_up": _spread(ups),
        "bound_speed_up": _spread(limits),
        "share_of_bound": _spread(up / limit for up, limit in zip(ups, limits, strict=True)),
        "accuracy": _spread(found["accuracy"] for found in runs),
        "test_loss": _spread(found["test_loss"] for found in runs),
        "identical": [sum(found[name] for found in runs) for name in ("identical_steps", "compared_steps")],
        "as_plain_steps": [found["as_plain_steps"] for found in runs],
        "lead_steps": [
            _spread(found["lead_steps"][which] for found in runs if found["lead_steps"]) for which in (0, 1)
        ],
        "armed_runs": sum(one["armed_ranks"] == runs[0]["ranks"] for one in told),
        "reasons": sorted({reason for one in told for reason in one["reasons"]}),
        "lines": sorted(
            {line for found in runs for line in found["lines"] if line.startswith("straggler: mitigation")}
        ),
        "filled_by_proxy": _spread(one["filled_by_proxy"] for one in told),
        "slots": _spread(one["slots"] for one in told),
        "pending": _spread(one["pending"] for one in told),
        "dropped": _spread(one["dropped"] for one in told),
        "staleness_max": max((one["staleness_max"] for one in told), default=None),
        "messages_per_10000_slots": _spread(
            one["messages_per_10000_slots"] for one in told if one["messages_per_10000_slots"] is not None
        ),
    }


def _spread(values: Iterable[float]) -> list[float] | None:
    """Median, smallest, largest."""
    known = list(values)
    return [round(float(of(known)), 4) for of in (statistics.median, min, max)] if known else None
