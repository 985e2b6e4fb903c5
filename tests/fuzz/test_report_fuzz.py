"""The report that is found in the store: whatever it holds, its fields are of their types, or it is refused."""

import json
import typing
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from fuzzing import JSON, SECONDS, TEXT, damaged, holds
from hypothesis import strategies as some
from recorded import report_record

from torch_straggler.report import JobReport

pytestmark = pytest.mark.timeout(SECONDS + 180)


def is_of(value: Any, kind: Any) -> bool:
    """Whether a value, and all that is in it, is of its annotated type."""
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(is_of(inner, arguments[0]) for inner in value)
    if arguments:
        return any(is_of(value, one) for one in arguments)
    if is_dataclass(kind):
        types = typing.get_type_hints(kind)
        return isinstance(value, kind) and all(is_of(getattr(value, f.name), types[f.name]) for f in fields(kind))
    return isinstance(value, (int, float) if kind is float else kind) and isinstance(value, bool) == (kind is bool)


def is_read_or_refused(text: str) -> None:
    try:
        read = JobReport.from_json(text)
    except ValueError:
        return
    assert is_of(read, JobReport)


def test_a_report_with_other_values_is_read_or_refused() -> None:
    record = report_record()
    assert is_of(JobReport.from_json(json.dumps(record)), JobReport)
    holds(is_read_or_refused, damaged(record).map(json.dumps))


def test_other_text_is_read_or_refused() -> None:
    whole = json.dumps(report_record())
    cut = some.tuples(some.integers(0, len(whole)), TEXT, some.integers(0, len(whole)))
    pieces = cut.map(lambda where: whole[: where[0]] + where[1] + whole[where[2] :])
    holds(is_read_or_refused, pieces | JSON.map(json.dumps) | TEXT)
