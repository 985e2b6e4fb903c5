"""Jobs that are no plain data parallel training: several groups, ranks with nothing to tell, ranks not heard."""

from typing import Any

import pytest
from ranks import Job, run_ranks

RANKS = 4

# A session each, in this order; each of its functions is given its own groups.
ODD = """
import torch_straggler

class StoreInPython(dist.Store):
    # What torch's groups ask of a store, passed on to one in C++.
    def __init__(self, store):
        super().__init__()
        self.store = store

    def set(self, key, value):
        self.store.set(key, value)

    def get(self, key):
        return self.store.get(key)

    def add(self, key, value):
        return self.store.add(key, value)

    def wait(self, keys, timeout=timedelta(seconds=20)):
        self.store.wait(keys, timeout)

    def check(self, keys):
        return self.store.check(keys)

def chain():
    # Rank 0 is slow; whoever waits for it in one group comes late to the next.
    groups = [dist.new_group([first, first + 1]) for first in range(3)]
    for _ in range(180):
        time.sleep(0.018 if RANK == 0 else 0.01)
        for first, group in enumerate(groups):
            if RANK in (first, first + 1):
                dist.all_reduce(torch.ones(8), group=group)
        dist.all_reduce(torch.ones(8))

def late_subgroup():
    # A group that begins in mid-run. Its first operations take their time on one of its ranks.
    group = None
    for step in range(230):
        time.sleep(0.01)
        if step == 10:
            group = dist.new_group([1, 2])
        if group is not None and RANK in (1, 2):
            time.sleep(0.15 if RANK == 1 and step < 13 else 0)
            dist.broadcast(torch.ones(8), 1, group=group)
        dist.all_reduce(torch.ones(8))

def unequal():
    # Ranks 0 and 1 train, rank 2 has other operations, rank 3 has none.
    pair = dist.new_group([0, 1])
    alone = dist.new_group([2])
    for _ in range(100):
        if RANK in (0, 1):
            dist.all_reduce(torch.ones(8), group=pair)
        if RANK == 2:
            dist.broadcast(torch.ones(8), 2, group=alone)

def unheard():
    for _ in range(130):
        time.sleep(0.018 if RANK == 2 else 0.01)
        dist.all_reduce(torch.ones(8))

for job in (chain, late_subgroup, unequal, unheard):
    store = store_of_round()
    if job is unheard and RANK == 1:
        store = StoreInPython(store)
    limit = timedelta(seconds=4 if job is unheard else 30)
    dist.init_process_group(BACKEND, store=store, rank=RANK, world_size=WORLD, timeout=limit)
    del store
    job()
    number = dist.group.WORLD._get_sequence_number_for_group()
    begun = time.monotonic()
    torch_straggler.report()
    asked = time.monotonic() - begun
    same = dist.group.WORLD._get_sequence_number_for_group() == number
    dist.destroy_process_group()
    tell(**{job.__name__: [asked, same, time.monotonic() - begun]})
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return run_ranks(tmp_path_factory.mktemp("odd"), ODD, RANKS, seconds=80).succeeded()


def report_of(job: Job, name: str) -> dict[str, Any]:
    return job.of_type("report")[list(job.told[0]).index(name)]


def test_a_rank_that_waited_in_one_group_is_not_blamed_in_the_next(odd: Job) -> None:
    report = report_of(odd, "chain")
    assert report["verdict"]["ranks"] == [0], report["verdict"]
    self_ms = [rank["self_ms"] for rank in report["ranks"]]
    assert self_ms[0] - max(self_ms[1:]) == pytest.approx(8, abs=2)
    assert max(self_ms[1:]) - min(self_ms[1:]) < 2


def test_the_first_operations_of_a_late_subgroup_raise_no_alarm(odd: Job) -> None:
    """CASES 2.28."""
    report = report_of(odd, "late_subgroup")
    assert report["verdict"]["kind"] == "none", report["verdict"]
    largest = {row["kind"]: row["skew_max_ms"] for row in report["skew"]}
    assert largest["broadcast"] < 100 < largest["all_reduce"]  # the default group's, which is no new one, show it


def test_ranks_with_nothing_or_other_operations_to_tell_keep_nobody_waiting(odd: Job) -> None:
    """CASES 2.27."""
    report = report_of(odd, "unequal")
    assert report["ranks_reported"] == RANKS
    assert report["verdict"]["kind"] == "abstain"
    assert report["collectives"] == 300
    for told in odd.told:
        asked, _, ended = told["unequal"]
        assert asked < 0.5 and ended < 5


def test_a_report_adds_no_collective(odd: Job) -> None:
    """CASES 2.02."""
    for told in odd.told:
        assert all(same for _, same, _ in (told[name] for name in ("chain", "late_subgroup", "unequal", "unheard")))


def test_a_rank_of_which_nothing_is_heard_is_missing_and_not_fast(odd: Job) -> None:
    """CASES 2.05: its store is one in Python, which no thread of ours can use. Rank 2 is slow, but is not judged."""
    report = report_of(odd, "unheard")
    assert report["verdict"]["kind"] == "abstain"
    assert report["ranks_reported"] == 3
    assert report["ranks"][1] | {"rank": 1, "last": 0} == {
        name: None if value is None else value for name, value in report["ranks"][1].items()
    }
    assert report["ranks"][1]["self_ms"] is None and report["ranks"][1]["host"] is None
    assert any("nothing was heard of rank 1" in note for note in report["notes"])


def test_no_wait_for_the_store_is_longer_than_the_groups_timeout(odd: Job) -> None:
    """CASES 5.03: of 4 s, while the root waits for a rank of which nothing is heard."""
    for told in odd.told:
        asked, _, ended = told["unheard"]
        assert asked < 0.5 and ended < 4


def test_a_store_in_python_costs_one_line_and_its_local_name_may_go(odd: Job) -> None:
    """CASES 1.44."""
    assert odd.ranks[1].our_lines == [
        "straggler: rank 1: other ranks cannot be reached: the store is not one of torch's own in C++; training goes on"
    ]
    assert not [line for rank in odd.ranks if rank.number != 1 for line in rank.our_lines]
