"""Every record keeps to backend/report/records.schema.json: the lines that the core's tests write down, one of each
type, and those of a real job.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema", reason='jsonschema is missing: pip install ".[test]"')

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "backend/report/records.schema.json").read_text())
TYPES = {branch["$ref"].removeprefix("#/$defs/") for branch in SCHEMA["oneOf"]}
UNITS = {"_ns": "nanoseconds", "_us": "microseconds", "_ms": "milliseconds"}
LIMIT_S = 120

JOB = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("straggler_gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 8))
for _ in range(30):
    model(torch.ones(4, 8)).sum().backward()
work = dist.all_reduce(torch.ones(4), async_op=True)
work.wait()
if dist.get_rank() == 0:
    dist.send(torch.ones(4), 1)
else:
    dist.recv(torch.ones(4), 0)
dist.destroy_process_group()
"""


def check(lines: list[str]) -> set[str]:
    """Holds each line against its own type's part of the schema: its errors say more than oneOf's. Gives the types."""
    seen = set()
    for number, line in enumerate(lines, start=1):
        record = json.loads(line)
        kind = record["type"]
        assert kind in TYPES, f"line {number}: no type {kind} in the schema"
        part = {"$ref": f"#/$defs/{kind}", "$defs": SCHEMA["$defs"]}
        errors = sorted(jsonschema.Draft202012Validator(part).iter_errors(record), key=str)
        assert not errors, f"line {number}, {errors[0].json_path}: {errors[0].message}\n{line}"
        jsonschema.Draft202012Validator(SCHEMA).validate(record)
        seen.add(kind)
    return seen


def fields(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for part in schema.values():
            yield from fields(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from fields(part)


def described(field: dict[str, Any]) -> str:
    """The field's description, or that of the definition that it refers to."""
    reference = field.get("$ref", "").removeprefix("#/$defs/")
    return field.get("description") or SCHEMA["$defs"].get(reference, {}).get("description", "")


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_field_has_a_description_that_tells_its_unit():
    for name, field in fields(SCHEMA):
        if "const" in field:
            continue
        assert described(field), f"{name} has no description"
        for ending, unit in UNITS.items():
            if name.endswith(ending):
                assert unit in described(field), f"{name}: its description does not say {unit}"


def test_a_field_that_the_schema_does_not_know_is_refused():
    record = {"schema": 1, "type": "session", "ranks": [0], "window": 10, "unix_time_ns": 1}
    jsonschema.Draft202012Validator(SCHEMA).validate(record)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(record | {"extra": 1})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(record | {"schema": 2})


def test_lines_of_every_type_keep_to_the_schema():
    written = sorted(ROOT.glob("build/*/tests/record_lines.jsonl"), key=lambda path: path.stat().st_mtime)
    if not written:
        pytest.skip("the core's tests have not written their lines: run tooling/core_tests.sh core first")
    assert check(written[-1].read_text().splitlines()) == TYPES


@pytest.mark.skipif(find_spec("torch_straggler") is None, reason="torch_straggler is not installed: make setup")
def test_records_of_a_real_job_keep_to_the_schema(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(JOB)
    records = tmp_path / "records"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    environment = os.environ | {"STRAGGLER_DIR": str(records), "OMP_NUM_THREADS": "1"}
    job = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S)
    assert job.returncode == 0, job.stderr
    assert check((records / "job.jsonl").read_text().splitlines()) == TYPES - {
        "operation",
        "mitigation",
        "clock",
        "participation_start",
        "participation",
    }
    for rank in range(2):
        lines = (records / f"rank-{rank:05}.jsonl").read_text().splitlines()
        assert len(lines) > 30
        assert check(lines) == {"operation"}
        assert {json.loads(line)["rank"] for line in lines} == {rank}
