"""The same again and again: groups, sessions, forks. What a process holds in the end is what gloo holds.

Each has a short form for every run and a long one: `-m long`.
"""

from typing import Any

import pytest
from alike import BesideGloo, assert_alike
from ranks import Job

# What the process holds: resident memory in KB, threads, descriptors; and the store's keys.
HOLDS = """
import gc

def holds(store):
    gc.collect()
    time.sleep(0.3)  # threads of torch's stores take a moment to end
    with open("/proc/self/statm") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    counted = {name: len(os.listdir(f"/proc/self/{name}")) for name in ("task", "fd")}
    return {"kb": resident, **counted, "keys": store.num_keys()}
"""

GROUPS = (
    HOLDS
    + """
store = store_of_round()
dist.init_process_group(BACKEND, store=store, rank=RANK, world_size=WORLD)
for number in range(-20, int(os.environ["GROUPS"])):
    if number == 0:
        dist.barrier()
        before = holds(store)
        dist.barrier()
    group = dist.new_group()
    dist.all_reduce(torch.ones(4), group=group)
    dist.destroy_process_group(group)
    del group
dist.barrier()
tell(before=before, after=holds(store))
dist.barrier()
dist.destroy_process_group()
"""
)


def growth(told: dict[str, Any]) -> dict[str, int]:
    return {name: told["after"][name] - told["before"][name] for name in told["after"]}


def assert_grows_as_gloos(ours: Job, gloos: Job, keys: int, kb: int) -> None:
    """Both ended well; threads and descriptors are as on gloo, keys and memory at most so much beyond."""
    ours.succeeded()
    gloos.succeeded()
    for told, gloo in zip(map(growth, ours.told), map(growth, gloos.told), strict=True):
        both = f"ours {told}, gloo's {gloo}"
        assert told["task"] <= max(gloo["task"], 0), both
        assert told["fd"] <= max(gloo["fd"], 0), both
        assert told["keys"] <= gloo["keys"] + keys, both
        assert told["kb"] <= max(gloo["kb"], 0) + kb, both


@pytest.mark.timeout(400)
@pytest.mark.parametrize("groups", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_groups_that_are_made_and_destroyed_leave_what_gloos_leave(groups: int, beside_gloo: BesideGloo) -> None:
    """Threads and descriptors as gloo's, no key of the store's beyond, and at most 5 MB more by 1,000 groups."""
    ours, gloos = beside_gloo(GROUPS, seconds=380, GROUPS=str(groups))
    # The keys are those of the session, if it made them in between.
    assert_grows_as_gloos(ours, gloos, keys=3, kb=1024 + 4 * groups)
    made = [line for line in ours.of_type("group") if line["rank"] == 0]
    assert len({line["name"] for line in made}) == groups + 21


SESSIONS = (
    HOLDS
    + """
launcher = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)
after = []
for number in range(int(os.environ["ROUNDS"])):
    init()
    for _ in range(5):
        dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()
    after.append(holds(launcher))
tell(before=after[3], after=after[-1])
"""
)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rounds", [10, pytest.param(50, marks=pytest.mark.long)])
def test_init_and_destroy_again_and_again_leave_no_thread_and_no_descriptor(
    rounds: int, beside_gloo: BesideGloo
) -> None:
    """Each round has a session of its own, with its report; it leaves at most six keys in the round's store."""
    ours, gloos = beside_gloo(SESSIONS, seconds=280, ROUNDS=str(rounds))
    assert_grows_as_gloos(ours, gloos, keys=6 * rounds, kb=1024 + 100 * rounds)
    assert [report["ranks_reported"] for report in ours.of_type("report")] == [2] * rounds


FORKS = """
import torch_straggler
from torch.utils.data import DataLoader, Dataset

class Seen(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.tensor([float(torch_straggler.report() is None)])

init()
descriptors, seen = [], set()
busy = [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(2000)]  # our thread reads while workers are forked
for cycle in range(int(os.environ["CYCLES"])):
    busy += [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(20)]
    for batch in DataLoader(Seen(), num_workers=1):
        seen |= set(batch.flatten().tolist())
    for work in busy:
        work.wait()
    busy = []
    descriptors.append(len(os.listdir("/proc/self/fd")))
tell(seen=list(seen), few=min(descriptors[:10]), fewer=min(descriptors[-10:]))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_five_hundred_cycles_of_forks_amid_operations_do_not_hang(beside_gloo: BesideGloo) -> None:
    """CASES 5.14: a worker owns no session and no thread of ours; descriptors are flat."""
    ours, gloos = beside_gloo(FORKS, seconds=580, CYCLES="500")
    assert_alike(ours, gloos, lines=0, slower=60)
    assert_no_session_in_a_worker(ours)
    assert ours.report["collectives"] == sum(len(ours.operations(rank)) for rank in range(2)) == 2 * 12_001


def assert_no_session_in_a_worker(job: Job) -> None:
    job.succeeded()
    for told in job.told:
        assert told["seen"] == [1.0]
        assert told["fewer"] <= told["few"]
