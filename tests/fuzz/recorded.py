"""Records as a job of two ranks writes them: one line of each kind that a replay uses, and the report of them."""

import json
from typing import Any

from torch_straggler import _C

SESSION: dict[str, Any] = {
    "schema": 1,
    "type": "session",
    "ranks": [0, 1],
    "window": 10,
    "unix_time_ns": 1,
    "rule": "self_time",
    "multiplier": 2.0,
}


def rank_lines(rank: int) -> list[dict[str, Any]]:
    """What a rank told, the second one 9 ms late at each step."""
    self_us = 25_000 + 9_000 * rank
    operations = [
        {
            "group": (2166136261 ^ ord("0")) * 16777619 % 2**32,  # the FNV-1a hash of its name, "0"
            "collective_seq_id": 20 + number,
            "kind": "all_reduce",
            "arrival_ns": 1_000_000 * number + 9_000 * rank,
            "completed_ns": 1_000_000 * number + 20_000 if number % 2 else None,
            "polled": False,
        }
        for number in range(4)
    ]
    lines: list[dict[str, Any]] = [
        {"type": "rank", "host": f"host-{rank}", "pid": 100 + rank, "clock_domain": "clock"},
        {"type": "group", "name": "0", "desc": "default_pg", "backend": "gloo", "ranks": [0, 1]},
        *(
            {
                "type": "window",
                "first_step": first,
                "stride": 1,
                "steps_found_by": "graph_task",
                "self_us": [self_us] * 10,
                "duration_us": 400_000,
                "input_us": 1_000 if rank else None,
                "cpu_us": 20_000,
                "run_delay_us": None,
                "major_faults": rank,
                "block_io_us": 50_000 if rank else 0,
                "read_bytes": 2_000_000,
                "retransmits": None,
            }
            for first in range(0, 60, 10)
        ),
        {"type": "arrivals", "sampling": 1, "operations": operations},
        {"type": "clock", "root_before_ns": 1, "root_after_ns": 3_000, "before_ns": 2, "after_ns": 3_001},
        {
            "type": "mitigation",
            "mode": "carry",
            "armed": True,
            "text": "gradients of group 0",
            "filled_by_proxy": 41 * rank,
            "late": 40 * rank,
            "applied": 37 * rank,
            "dropped": rank,
            "pending": 2 * rank,
            "staleness_sum": 74 * rank,
            "staleness_max": 5 * rank,
            "saved_us": 325_000 * rank,
        },
        {
            "type": "counters",
            "collectives": 24,
            "records_dropped": 0,
            "messages_lost": 0,
            "captured": 0,
            "final": True,
        },
    ]
    return [{"schema": 1, **line, "rank": rank} for line in lines]


def records() -> list[dict[str, Any]]:
    """The whole file, the lines of the two ranks by turns."""
    both = zip(rank_lines(0), rank_lines(1), strict=True)
    return [SESSION, *(line for pair in both for line in pair)]


def report_record() -> dict[str, Any]:
    replay = _C.Replay(SESSION)
    for line in records()[1:]:
        assert replay.line(line)
    record: dict[str, Any] = json.loads(replay.report_json())
    return record
