"""The tables of cases, faults, features and promises are true: what must have a row has one, each test exists."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TABLES = {
    name: (TESTS / name).read_text()
    for name in ("CASES.md", "faults/README.md", "features/FEATURES.md", "mitigation/README.md", "../SECURITY.md")
}
ROWS = {row.split("|")[1].strip(): row for row in re.findall(r"^\| \d\.\d\d \|.*$", TABLES["CASES.md"], re.MULTILINE)}
CASES = {1: 50, 2: 33, 3: 30, 5: 17}  # kinds that touch this project, and how many each has
NAMED = sorted({name for text in TABLES.values() for name in re.findall(r"`([\w/]+\.(?:py|cc)::[\w.]+)`", text)})


def test_every_case_has_a_row_with_a_test_or_a_reason() -> None:
    assert list(ROWS) == [f"{kind}.{number:02}" for kind, last in CASES.items() for number in range(1, last + 1)]
    assert all("::" in row or "Not tested: " in row for row in ROWS.values())


def test_every_test_of_a_fault_is_in_the_table_of_faults() -> None:
    written = set()
    for path in (TESTS / "faults").glob("*test*.*"):
        text, name = path.read_text(), f"faults/{path.name}"
        written |= {f"{name}::{test}" for test in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)}
        written |= {
            f"{name}::{suite}.{test}" for suite, test in re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", text, re.MULTILINE)
        }
    assert len(written) > 30
    assert written <= set(NAMED)


def test_every_test_of_mitigation_is_in_its_table() -> None:
    written = {
        f"mitigation/{path.name}::{test}"
        for path in (TESTS / "mitigation").glob("test_*.py")
        for test in re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }
    assert len(written) > 30
    assert written <= set(NAMED)
    rows = [row for row in TABLES["mitigation/README.md"].splitlines() if "mitigation/test_" in row]
    assert written <= {name for row in rows for name in NAMED if f"`{name}`" in row}


def test_every_fault_has_a_test() -> None:
    rows = [row for row in TABLES["faults/README.md"].splitlines() if row.startswith("| ") and "| fault |" not in row]
    assert len(rows) > 30
    assert all("::" in row or row.startswith(("| ---", "| **")) for row in rows)


@pytest.mark.parametrize("named", NAMED)
def test_a_test_that_is_named_exists(named: str) -> None:
    path, name = named.split("::")
    text = (TESTS / path).read_text()
    if path.endswith(".py"):
        assert re.search(rf"^def {name}\(", text, re.MULTILINE)
    else:
        assert re.search(rf"^TEST(_F)?\({name.replace('.', ', ')}\)", text, re.MULTILINE)
