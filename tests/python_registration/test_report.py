"""The report record as Python values."""

import dataclasses
import json
import sys
import types
from typing import Any

import pytest

import torch_straggler
from torch_straggler.report import ArrivalSkew, ClockOffset, Group, JobReport, MitigationReport, OsEvidence

RECORD: dict[str, Any] = {
    "schema": 1,
    "type": "report",
    "world_size": 4,
    "ranks_reported": 4,
    "clocks": 1,
    "steps": 200,
    "step_ms": 31.2,
    "steps_found_by": "graph_task",
    "groups": [{"name": "0", "desc": "default_pg", "backend": "gloo", "ranks": [0, 1, 2, 3]}],
    "collectives": 12345,
    "records_dropped": 0,
    "verdict": {
        "kind": "straggler",
        "ranks": [2],
        "hosts": ["h"],
        "group": "0",
        "cause": "not_attributed",
        "excess_ms": 8.1,
        "share": 0.21,
        "since_step": None,
        "confidence": 0.999,
        "reason": "self time 22.1 ms against 14.0 ms",
    },
    "ranks": [
        {
            "rank": 0,
            "host": "h",
            "pid": 1,
            "steps": 200,
            "step_ms": 31.2,
            "self_ms": 22.1,
            "wait_ms": 9.1,
            "lateness_p50_ms": None,
            "lateness_p95_ms": None,
            "lateness_max_ms": None,
            "last": 12,
            "operations_compared": 400,
            "time_lost_share": 0.01,
            "records_dropped": 0,
        }
    ],
    "skew": [
        {
            "kind": "all_reduce",
            "operations": 400,
            "skew_p50_ms": 8.0,
            "skew_p95_ms": 8.4,
            "skew_max_ms": 9.0,
            "bound_ms": 0.001,
        }
    ],
    "notes": ["operations captured in graphs are not seen"],
}
CLOCK: dict[str, Any] = {
    "ranks": [2, 3],
    "at_ns": 5_000_000_000,
    "offset_ms": 10_000.125,
    "offset_bound_ms": 0.25,
    "drift_ppm": -100,
    "drift_bound_ppm": 4.5,
    "drift_span_ms": 118_000,
    "leaps": 1,
}
MITIGATION: dict[str, Any] = {
    "rank": 2,
    "mode": "carry",
    "armed": True,
    "text": "gradients of group 0",
    "filled_by_proxy": 41,
    "late": 40,
    "applied": 37,
    "dropped": 1,
    "pending": 2,
    "staleness_mean": 2.0,
    "staleness_max": 5,
    "saved_ms": 3250,
}


def read(**changes: Any) -> JobReport:
    return JobReport.from_json(json.dumps({**RECORD, **changes}))


def test_every_field_is_read_and_what_was_not_measured_stays_none() -> None:
    report = read()
    assert report.verdict.ranks == (2,)
    assert report.verdict.since_step is None
    assert report.ranks[0].lateness_p50_ms is None
    assert report.groups == (Group(name="0", desc="default_pg", backend="gloo", ranks=(0, 1, 2, 3)),)
    assert report.skew == (ArrivalSkew("all_reduce", 400, 8.0, 8.4, 9.0, 0.001),)
    assert (report.steps_found_by, report.collectives, report.notes) == ("graph_task", 12345, tuple(RECORD["notes"]))


def test_records_of_an_earlier_version_get_defaults() -> None:
    assert (read().history, read().windows_compared, read().windows_late) == ((), 0, 0)
    assert read().mitigation == ()
    assert read().clock_offsets == ()
    verdict = read().verdict
    assert (verdict.step, verdict.rule, verdict.windows, verdict.input_ms) == (None, "self_time", 0, None)


def test_what_was_said_before_is_a_tuple_of_verdicts() -> None:
    said = {**RECORD["verdict"], "step": 59, "rule": "median", "windows": 3, "input_ms": 7.5, "last_p_value": 0.001}
    report = read(history=[said, RECORD["verdict"]], windows_compared=30, windows_incomplete=2, windows_late=1)
    assert report.history[1] == report.verdict
    assert (report.history[0].step, report.history[0].rule, report.history[0].input_ms) == (59, "median", 7.5)
    assert (report.windows_compared, report.windows_incomplete, report.windows_late) == (30, 2, 1)


def test_what_the_operating_system_counted_is_read_where_it_is_told() -> None:
    counted = {"block_io_ms": 6.1, "read_bytes": None, "a_counter_of_a_later_version": 1}
    verdict = read(verdict={**RECORD["verdict"], "os": counted, "os_peers": None}).verdict
    assert verdict.os == OsEvidence(block_io_ms=6.1)
    assert verdict.os_peers is None
    assert read().verdict.os is None
    with pytest.raises(ValueError, match="'block_io_ms' is no float"):
        read(verdict={**RECORD["verdict"], "os": {"block_io_ms": "6.1"}})


def test_mitigation_is_a_tuple_of_rows() -> None:
    nothing_applied = MITIGATION | {"rank": 3, "armed": False, "staleness_mean": None, "staleness_max": None}
    report = read(mitigation=[MITIGATION, nothing_applied])
    assert report.mitigation[0] == MitigationReport(
        2, "carry", True, "gradients of group 0", 41, 40, 37, 1, 2, 2.0, 5, 3250
    )
    assert (report.mitigation[1].armed, report.mitigation[1].staleness_mean) == (False, None)


def test_clocks_are_a_tuple_of_rows_and_what_is_not_known_is_none() -> None:
    unknown = {name: None for name in CLOCK} | {"ranks": [4], "leaps": 0}
    report = read(clock_offsets=[CLOCK, unknown])
    assert report.clock_offsets == (
        ClockOffset((2, 3), 5_000_000_000, 10_000.125, 0.25, -100, 4.5, 118_000, 1),
        ClockOffset((4,), None, None, None, None, None, None, 0),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"world_size": "4"},
        {"world_size": None},
        {"clocks": True},
        {"groups": 3},
        {"groups": [3]},
        {"verdict": None},
        {"verdict": {**RECORD["verdict"], "ranks": ["2"]}},
        {"ranks": [{**RECORD["ranks"][0], "host": 3}]},
        {"history": [{}]},
        {"clock_offsets": [{**CLOCK, "ranks": None}]},
        {"clock_offsets": [{**CLOCK, "offset_ms": "10"}]},
        {"mitigation": {}},
        {"mitigation": [{**MITIGATION, "armed": 1}]},
        {"mitigation": [{**MITIGATION, "armed": None}]},
        {"mitigation": [{**MITIGATION, "late": True}]},
        {"mitigation": [{**MITIGATION, "saved_ms": None}]},
        {"notes": "none"},
    ],
)
def test_a_field_of_another_type_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        read(**changes)


def test_what_was_found_in_the_store_and_is_no_report_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(text: bytes) -> JobReport | None:
        library = types.SimpleNamespace(report_json=lambda: text.decode())
        monkeypatch.setitem(sys.modules, "torch_straggler._C", library)
        return torch_straggler.report()

    assert found(json.dumps(RECORD).encode()) == read()
    for text in (b"{", b"[" * 4000, b'{"type":"report","schema":1}', b"\xff"):
        assert found(text) is None


def test_values_are_frozen_and_comparable() -> None:
    assert read() == read()
    with pytest.raises(dataclasses.FrozenInstanceError):
        read().steps = 1  # type: ignore[misc]


def test_fields_of_a_later_version_are_ignored() -> None:
    assert read(weather="fine", verdict={**RECORD["verdict"], "mood": 1}) == read()


def test_another_schema_is_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"schema 2, this torch_straggler reads schema 1"):
        read(schema=2)


@pytest.mark.parametrize("text", ["[]", '{"type": "window", "schema": 1}', "{", "", "[" * 4000])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        JobReport.from_json(text)


def test_a_missing_field_is_named() -> None:
    record = {name: value for name, value in RECORD.items() if name != "collectives"}
    with pytest.raises(ValueError, match="no field 'collectives'"):
        JobReport.from_json(json.dumps(record))


def test_without_a_session_there_is_no_report() -> None:
    assert torch_straggler.report() is None
