"""What became of each test, and where two runs differ. Pure, but for reading files.

A run is a mapping from the test's name to its outcome. A test that one run has and the other lacks was not run there,
which is a difference as any other.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

FAILED = {"failure": "failed", "error": "failed", "skipped": "skipped"}
# The line of a traceback that says what was raised, in pytest's report with an E before it.
RAISED = re.compile(r"^(?:E +)?((?:\w+\.)*\w*(?:Error|Exception)(?::.*)?)$", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """`kind` is passed, failed, skipped or not run; `reason` is empty for what passed."""

    kind: str
    reason: str = ""


NOT_RUN = Outcome("not run", "no outcome was written")


@dataclass(frozen=True)
class Difference:
    test: str
    stock: Outcome
    other: Outcome

    def __str__(self) -> str:
        return (
            f"{self.test}: {self.stock.kind} on gloo, {self.other.kind} here: {self.other.reason or self.stock.reason}"
        )


# ---- Reading ----


def read_junit(path: Path) -> dict[str, Outcome]:
    """The outcomes in pytest's XML file.

    Raises:
        OSError: there is no such file.
        ValueError: it is not XML, or holds no test.
    """
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not a file of outcomes: {error}") from error
    if not cases:
        raise ValueError(f"{path} holds no test")
    outcomes: dict[str, Outcome] = {}
    for case in cases:
        outcome = _outcome(case)
        name = case.get("name", "")
        if name not in outcomes or outcome.kind == "failed":  # pytest writes an error of the tear-down beside the pass
            outcomes[name] = outcome
    return outcomes


def _outcome(case: ElementTree.Element) -> Outcome:
    for child in case:
        if child.tag in FAILED:
            return Outcome(FAILED[child.tag], _reason(child))
    return Outcome("passed")


def _reason(child: ElementTree.Element) -> str:
    """What a test says for itself: a skip's text, or the innermost error that a rank raised."""
    raised = RAISED.findall(child.text or "") if child.tag != "skipped" else []
    reason = raised[-1] if raised else child.get("message", "").strip().split("\n")[0]
    return reason.strip()[:200]


def listed_differences(table: str, column: str, processes: int) -> dict[str, str]:
    """Test to kind of outcome, from the column of a Markdown table that begins with "test" and "processes".

    A row `` | `test_name` | 2, 4 | skipped | ... | `` is about runs with 2 and with 4 processes; where it says
    passed, no difference is expected.

    Raises:
        ValueError: there is no such table.
    """
    header = re.search(r"^\| test \| processes \|.*$", table, re.MULTILINE)
    columns = _cells(header.group()) if header else []
    if column not in columns:
        raise ValueError(f"there is no table of tests with a column '{column}'")
    rows = [_cells(row) for row in re.findall(r"^\| `test_\w+` \|.*$", table, re.MULTILINE)]
    kinds = {row[0].strip("`"): row[columns.index(column)] for row in rows if str(processes) in row[1].split(", ")}
    return {test: kind for test, kind in kinds.items() if kind != "passed"}


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


# ---- Comparing ----


def differences(stock: Mapping[str, Outcome], other: Mapping[str, Outcome]) -> Iterator[Difference]:
    """The tests that do not end alike, by name. Two that fail alike do not differ, whatever they raise."""
    for test in sorted({*stock, *other}):
        pair = stock.get(test, NOT_RUN), other.get(test, NOT_RUN)
        if pair[0].kind != pair[1].kind:
            yield Difference(test, *pair)


def problems(found: list[Difference], listed: Mapping[str, str]) -> list[str]:
    """What is wrong about these differences, if exactly those in `listed`, test to kind, are as it should be."""
    kinds = {difference.test: difference.other.kind for difference in found}
    unlisted = [f"not listed: {difference}" for difference in found if difference.test not in listed]
    changed = [
        f"listed as {kind}, is {kinds[test]}: {test}" for test, kind in listed.items() if kinds.get(test, kind) != kind
    ]
    gone = [f"listed as {kind}, and no difference: {test}" for test, kind in listed.items() if test not in kinds]
    return unlisted + changed + gone
