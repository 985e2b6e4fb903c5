"""CASES.md is kept true: every case has a row, and every test that it or features/FEATURES.md names is there."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROWS = {
    row.split("|")[1].strip(): row for row in (TESTS / "CASES.md").read_text().splitlines() if row.startswith("| 2.")
}
NAMING = "\n".join([*ROWS.values(), (TESTS / "features/FEATURES.md").read_text()])
NAMED = sorted(set(re.findall(r"`([\w/]+\.(?:py|cc)::[\w.]+)`", NAMING)))


def test_every_case_has_a_row_with_a_test_or_a_reason() -> None:
    assert list(ROWS) == [f"2.{number:02}" for number in range(1, 34)]
    assert all("::" in row or "Not tested: " in row for row in ROWS.values())


@pytest.mark.parametrize("named", NAMED)
def test_a_test_that_is_named_exists(named: str) -> None:
    path, name = named.split("::")
    text = (TESTS / path).read_text()
    if path.endswith(".py"):
        assert re.search(rf"^def {name}\(", text, re.MULTILINE)
    else:
        assert re.search(rf"^TEST(_F)?\({name.replace('.', ', ')}\)", text, re.MULTILINE)
