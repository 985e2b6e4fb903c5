"""That the comparison of the features finds what it is there to find, on jobs that are made up."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import feature_table
import pytest
from feature_job import COMPLAINT, Account, Outcome, Ran, differences, unlike_records
from features import FEATURES, Feature

FEATURE = Feature("made up", Path("made_up.py"))


def record(kind: str, group: str = "0", method: str = "") -> dict[str, Any]:
    return {"process_group": [group, ""], "kind": kind, "method": method, "is_p2p": kind in ("send", "recv")}


RECORDS = [
    record("all_reduce"),
    record("reduce_scatter"),
    record("send"),
    record("barrier", method="monitoredBarrier"),
    record("all_gather", "1"),
]
COUNTED = Account(Counter({("0", "all_reduce"): 2, ("1", "all_gather"): 1}), Counter({"0": 5, "1": 1}))
BARE = Ran(0, {"attempt_0/0": "out\n"}, "", [COUNTED], [[]])
OURS = replace(BARE, records=[RECORDS])


def test_jobs_that_are_alike_are_called_so() -> None:
    assert list(differences(FEATURE, BARE, OURS)) == []
    assert list(unlike_records(BARE, OURS)) == []


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([], id="none"),
        *(pytest.param(RECORDS[:n] + RECORDS[n + 1 :], id=f"without_{n}") for n in range(len(RECORDS))),
        *(pytest.param([*RECORDS, again], id=f"{number}_twice") for number, again in enumerate(RECORDS)),
        pytest.param([*RECORDS[:-1], record("all_gather")], id="another_group"),
        pytest.param([*RECORDS[:-1], record("broadcast", "1")], id="another_kind"),
    ],
)
def test_a_record_that_is_missing_double_or_wrong_is_found(records: list[dict[str, Any]]) -> None:
    assert list(unlike_records(BARE, replace(OURS, records=[records])))


def test_a_collective_that_only_one_of_the_jobs_has_is_found() -> None:
    more = Account(COUNTED.collectives + Counter({("0", "barrier"): 1}), COUNTED.operations + Counter({"0": 1}))
    assert list(unlike_records(replace(BARE, accounts=[more]), OURS))
    assert list(unlike_records(BARE, replace(OURS, accounts=[more], records=[[*RECORDS, record("barrier")]])))


def nameless(account: Account, *kinds: str) -> Account:
    return Account(account.collectives + Counter({("", kind): 1 for kind in kinds}), account.operations)


def test_a_group_that_torch_makes_for_itself_has_to_be_the_same_in_both_jobs_and_is_not_recorded() -> None:
    counted = nameless(COUNTED, "barrier")
    both = replace(BARE, accounts=[counted]), replace(OURS, accounts=[counted])
    assert list(unlike_records(*both)) == []
    assert list(unlike_records(both[0], OURS))
    assert list(unlike_records(both[0], replace(both[1], records=[[*RECORDS, record("barrier")]])))


def test_where_no_group_has_a_name_kinds_and_numbers_are_compared() -> None:
    """As under DETAIL: torch's own all_gathers are not held against the records."""
    counted = nameless(Account(Counter(), COUNTED.operations), "all_reduce", "all_gather")
    counted.collectives["", "all_reduce"] += 1
    both = replace(BARE, accounts=[counted]), replace(OURS, accounts=[counted])
    assert list(unlike_records(*both)) == []
    assert list(unlike_records(both[0], replace(both[1], records=[RECORDS[1:]])))
    assert list(unlike_records(both[0], replace(both[1], records=[[*RECORDS[1:], record("broadcast")]])))


@pytest.mark.parametrize(
    "ours",
    [
        replace(OURS, exit_code=1),
        replace(OURS, output={"attempt_0/0": "other\n"}),
        replace(OURS, output={**OURS.output, "attempt_1/0": "out\n"}),
        replace(OURS, stderr=f"straggler: rank 0: something{COMPLAINT}\n"),
    ],
    ids=["exit_code", "output", "attempts", "complaint"],
)
def test_what_is_not_as_with_bare_torchrun_is_found(ours: Ran) -> None:
    assert list(differences(FEATURE, BARE, ours))


def test_a_complaint_that_is_due_has_to_be_made_once() -> None:
    due, line = replace(FEATURE, said="DETAIL"), f"straggler: rank 0: DETAIL{COMPLAINT}\n"
    assert list(differences(due, BARE, OURS))
    assert list(differences(due, BARE, replace(OURS, stderr=line))) == []
    assert list(differences(due, BARE, replace(OURS, stderr=line * 2)))


def test_the_table_keeps_what_was_not_run() -> None:
    found = {feature.id: Outcome(f"yes {number}", "once", "", True) for number, feature in enumerate(FEATURES)}
    document = feature_table.render("", found, "Found with torch 2.15.0.")
    assert feature_table.render(document, {}, feature_table.found_with(document)) == document
    one = {FEATURES[0].id: Outcome("no: exit code 1", "once", "", True)}
    changed = feature_table.render(document, one, "Found with torch 2.15.0.")
    assert feature_table.cells_of(changed) == {
        **feature_table.cells_of(document),
        FEATURES[0].id: ("no: exit code 1", "once"),
    }
