"""Each feature through the wrapper and without, and FEATURES.md, the table of what came out.

With FEATURES=every (others.sh) all of them are run and the table is written; else the quick ones, and it is compared.
"""

import os
from pathlib import Path

import feature_table
import pytest
import torch
from feature_job import ONCE, Outcome, compare
from features import FEATURES, Feature

EVERY = os.environ.get("FEATURES") == "every"
RUN = [feature for feature in FEATURES if feature.quick or EVERY]

outcomes: dict[str, Outcome] = {}


@pytest.mark.parametrize("feature", RUN, ids=lambda feature: feature.id)
def test_a_feature_works_and_each_collective_of_it_is_recorded_once(feature: Feature, tmp_path: Path) -> None:
    if feature.needs:
        pytest.importorskip(feature.needs, reason=f"{feature.needs} is missing: run tests/features/others.sh")
    outcome = compare(feature, tmp_path)
    if not outcome.works_without and not feature_table.is_of_this_torch():
        pytest.skip(f"bare torchrun of torch {torch.__version__} cannot do it either")
    outcomes[feature.id] = outcome
    assert (outcome.works, outcome.recorded) == (feature.works, ONCE), outcome.details


def test_the_table_is_what_this_run_found() -> None:
    """The last of this file, so that all features have been run. Nothing is compared of those that have not."""
    document = feature_table.read()
    if EVERY:
        document = feature_table.render(document, outcomes, feature_table.installed())
        feature_table.DOCUMENT.write_text(document)
    versions = feature_table.found_with(document)
    assert document == feature_table.render(document, outcomes, versions), "run tests/features/others.sh and commit it"
