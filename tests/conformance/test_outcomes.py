"""The comparison of two runs of torch's suite: it says what differs, and a file that is broken is no agreement."""

from pathlib import Path

import pytest
from outcomes import Difference, Outcome, differences, listed_differences, problems, read_junit

PASSED = Outcome("passed")
ERROR = """common_distributed.py:1289: in _check_return_codes
    raise RuntimeError(error)
E   RuntimeError: Process 0 exited with error code 10 and exception:
E   Traceback (most recent call last):
E       self.assertEqual(1, 2)
E   AssertionError: 1 != 2
E
E   To execute this test, run the following"""
HUNG = "E   TimeoutError: hung: not done after 60 s, and ended"
JUNIT = f"""<testsuites><testsuite name="pytest">
<testcase name="test_good" time="1"/>
<testcase name="test_bad" time="1"><failure message="RuntimeError: Process 0 exited">{ERROR}</failure></testcase>
<testcase name="test_other" time="1"><skipped type="pytest.skip" message="Need a device">x</skipped></testcase>
<testcase name="test_hung" time="1"><failure message="TimeoutError: hung">{HUNG}</failure></testcase>
<testcase name="test_late" time="1"/>
<testcase name="test_late" time="1"><error message="failed on teardown with &quot;x&quot;">long</error></testcase>
</testsuite></testsuites>"""
STOCK = {
    "test_good": PASSED,
    "test_bad": Outcome("failed", "AssertionError: 1 != 2"),
    "test_other": Outcome("skipped", "Need a device"),
    "test_hung": Outcome("failed", "TimeoutError: hung: not done after 60 s, and ended"),
    "test_late": Outcome("failed", 'failed on teardown with "x"'),
}


def file_of(folder: Path, text: str) -> Path:
    path = folder / "outcomes.xml"
    path.write_text(text)
    return path


def test_outcomes_are_read_with_their_reason(tmp_path: Path) -> None:
    assert read_junit(file_of(tmp_path, JUNIT)) == STOCK


@pytest.mark.parametrize("text", ["", JUNIT[:300], "<testsuites/>", "{}"])
def test_a_file_that_is_broken_or_empty_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"outcomes\.xml"):
        read_junit(file_of(tmp_path, text))


def test_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_junit(tmp_path / "outcomes.xml")


def test_equal_runs_do_not_differ() -> None:
    assert list(differences(STOCK, dict(reversed(STOCK.items())))) == []


@pytest.mark.parametrize("kind", ["failed", "skipped"])
def test_a_test_that_passes_on_gloo_alone_is_a_difference(kind: str) -> None:
    lost = Outcome(kind, "why")
    assert list(differences(STOCK, {**STOCK, "test_good": lost})) == [Difference("test_good", PASSED, lost)]


def test_a_test_that_passes_on_the_other_alone_is_a_difference() -> None:
    found = list(differences(STOCK, {**STOCK, "test_bad": PASSED}))
    assert [difference.test for difference in found] == ["test_bad"]


def test_a_test_that_was_not_run_is_a_difference() -> None:
    """As when the file breaks off in the middle."""
    found = list(differences(STOCK, {"test_good": PASSED}))
    assert [difference.test for difference in found] == ["test_bad", "test_hung", "test_late", "test_other"]
    assert {difference.other.kind for difference in found} == {"not run"}


def test_failures_of_the_same_test_are_alike_whatever_they_raise() -> None:
    assert list(differences(STOCK, {**STOCK, "test_bad": Outcome("failed", "ValueError")})) == []


def test_the_listed_differences_and_no_others_are_as_they_should_be() -> None:
    found = [Difference("test_good", PASSED, Outcome("failed", "KeyError: 'a'"))]
    assert problems(found, {"test_good": "failed"}) == []
    assert problems(found, {}) == ["not listed: test_good: passed on gloo, failed here: KeyError: 'a'"]
    assert problems(found, {"test_good": "skipped"}) == ["listed as skipped, is failed: test_good"]
    assert problems([], {"test_good": "failed"}) == ["listed as failed, and no difference: test_good"]


def test_the_table_says_which_differences_hold_for_so_many_processes() -> None:
    table = """text
| test | processes | straggler_gloo | taken for gloo | why |
| --- | --- | --- | --- | --- |
| `test_a` | 2, 4 | skipped | passed | one |
| `test_b` | 4 | failed | failed | two |
"""
    assert listed_differences(table, "straggler_gloo", 2) == {"test_a": "skipped"}
    assert listed_differences(table, "straggler_gloo", 4) == {"test_a": "skipped", "test_b": "failed"}
    assert listed_differences(table, "taken for gloo", 4) == {"test_b": "failed"}
    with pytest.raises(ValueError, match="no table"):
        listed_differences("text", "straggler_gloo", 2)
