"""Recorded lines fed to the real `_C.Replay`: those of earlier versions too."""

import pytest

from torch_straggler import _C

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
    ],
)
def test_a_window_is_used_with_and_without_evidence(evidence: dict[str, int | None]) -> None:
    assert _C.Replay(SESSION).line(WINDOW | evidence)


@pytest.mark.parametrize("value", [-1, "1", 0.5, 2**64])
@pytest.mark.parametrize("field", ["input_us", "cpu_us", "run_delay_us"])
def test_evidence_that_is_no_count_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"'{field}' has another type"):
        _C.Replay(SESSION).line(WINDOW | {field: value})
