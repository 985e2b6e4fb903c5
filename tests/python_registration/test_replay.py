"""Recorded lines fed to the real `_C.Replay`: those of earlier versions too."""

import pytest

from torch_straggler import _C
from torch_straggler.report import JobReport, MitigationReport

SESSION = {"schema": 1, "type": "session", "ranks": [0, 1], "window": 10, "unix_time_ns": 1}
WINDOW = {
    "schema": 1,
    "type": "window",
    "first_step": 0,
    "stride": 1,
    "steps_found_by": "graph_task",
    "self_us": [25_000] * 10,
    "duration_us": 300_000,
    "rank": 1,
}


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"input_us": None, "cpu_us": None, "run_delay_us": None},
        {"input_us": 0, "cpu_us": 200_000, "run_delay_us": None},
        {"input_us": 50_000, "cpu_us": 200_000, "run_delay_us": 2**63},
        {"block_io_us": 50_000, "read_bytes": 2**64 - 1, "quota_throttles": None},
    ],
)
def test_a_window_is_used_with_and_without_evidence(evidence: dict[str, int | None]) -> None:
    assert _C.Replay(SESSION).line(WINDOW | evidence)


MITIGATION = {
    "schema": 1,
    "type": "mitigation",
    "mode": "carry",
    "armed": True,
    "text": "gradients of group 0",
    "filled_by_proxy": 41,
    "late": 40,
    "applied": 37,
    "dropped": 1,
    "pending": 2,
    "staleness_sum": 74,
    "staleness_max": 5,
    "saved_us": 325_000,
    "rank": 1,
}


def test_mitigation_is_in_the_report_and_the_last_line_counts() -> None:
    replay = _C.Replay(SESSION)
    assert replay.line(MITIGATION | {"armed": False, "text": "buckets are not known yet"})
    assert replay.line(MITIGATION)
    (row,) = JobReport.from_json(replay.report_json()).mitigation
    assert row == MitigationReport(1, "carry", True, "gradients of group 0", 41, 40, 37, 1, 2, 2.0, 5, 325.0)
    assert "Mitigation (carry): armed: gradients of group 0\n" in replay.text()


@pytest.mark.parametrize(
    "field", [name for name in MITIGATION if name not in ("schema", "type", "rank", "mode", "text", "armed")]
)
def test_a_total_of_mitigation_that_is_no_count_is_refused_by_name(field: str) -> None:
    for value in (-1, "1", 0.5, 2**64):
        with pytest.raises(ValueError, match=f"'{field}' has another type"):
            _C.Replay(SESSION).line(MITIGATION | {field: value})


@pytest.mark.parametrize("value", [-1, "1", 0.5, 2**64])
@pytest.mark.parametrize("field", ["input_us", "cpu_us", "run_delay_us", "voluntary_switches", "quota_throttled_us"])
def test_evidence_that_is_no_count_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"'{field}' has another type"):
        _C.Replay(SESSION).line(WINDOW | {field: value})


def test_what_the_operating_system_counted_is_in_the_verdict_beside_the_peers() -> None:
    replay = _C.Replay(SESSION)
    for first in range(0, 120, 10):
        for rank in range(2):
            counted = {"block_io_us": 80_000 * rank, "read_bytes": 500_000, "retransmits": None}
            times = {"first_step": first, "self_us": [25_000 + 8_000 * rank] * 10, "duration_us": 340_000}
            assert replay.line(WINDOW | times | counted | {"rank": rank})
    verdict = JobReport.from_json(replay.report_json()).verdict
    assert (verdict.kind, verdict.ranks, verdict.cause) == ("straggler", (1,), "host_input")
    assert verdict.os is not None and verdict.os_peers is not None
    assert (verdict.os.block_io_ms, verdict.os_peers.block_io_ms) == (8.0, 0.0)
    assert (verdict.os.read_bytes, verdict.os.retransmits, verdict.os.major_faults) == (50_000, None, None)
    assert "its disk: blocked in I/O for 8.0 ms a step, peers 0.0" in verdict.reason
