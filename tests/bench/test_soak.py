"""What the soak calculates: the slope of a series, and the count of records."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "soak"))
from flatness import slope
from record_count import RecordCount


def test_a_slope_is_found_with_its_interval() -> None:
    times = np.arange(1000.0)
    noise = np.random.default_rng(1).normal(0, 1, 1000)
    found, low, high = slope(list(times), list(100 + 0.05 * times + noise))
    assert low < 0.05 < high and high - low < 0.01
    assert found == pytest.approx(0.05, abs=0.002)
    _, low, high = slope(list(times), list(100 + noise))
    assert low < 0 < high


def test_what_grows_only_at_the_start_is_warm_up() -> None:
    values = [min(number, 80) for number in range(1000)]
    assert slope(list(range(1000)), values) == pytest.approx([0, 0, 0], abs=1e-9)


def test_too_few_samples_have_no_slope() -> None:
    with pytest.raises(ValueError, match="too few"):
        slope(list(range(10)), [1.0] * 10)


def test_records_are_counted_as_they_come_and_their_place_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "rank-00000.jsonl"
    count = RecordCount(path)
    count.read()
    lines = "".join(json.dumps({"collective_seq_id": number}, separators=(",", ":")) + "\n" for number in (0, 1, 2, 5))
    path.write_text(lines + '{"collective_seq_id":')
    count.read()
    assert (count.recorded, count.missing, count.disorder) == (4, 2, 0)
    with path.open("a") as file:
        file.write('6}\n{"collective_seq_id":6}\n{"collective_seq_id":null}\n')
    count.end(9)
    assert (count.recorded, count.missing, count.disorder) == (6, 4, 1)
