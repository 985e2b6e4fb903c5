"""Every operation of a job appears once in its rank's records, with what is true of it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ranks import Job, run_ranks

RANKS = 4

# Each call is noted with what it has to be recorded as, then made: in the default group and in two that share no rank.
MIXED = """
import warnings
warnings.simplefilter("ignore")
from torch.distributed import distributed_c10d as c10d

init()
noted = []
halves = [dist.new_group(ranks, group_desc="half", timeout=timedelta(seconds=20)) for ranks in ([0, 2], [1, 3])]
half = halves[RANK % 2]

def note(group, kind, asynchronous=False, dtype="Float", size=16):
    noted.append([group.group_name, kind, asynchronous, dtype, size])

def collectives(group, dtype, name):
    n, item = group.size(), torch.empty(0, dtype=dtype).element_size()
    ones = lambda count=4: torch.ones(count, dtype=dtype)
    many = lambda count=4: [ones(count) for _ in range(n)]
    size, at_root = 4 * item, group.rank() == 0
    root = dist.get_global_rank(group, 0)
    for asynchronous in (False, True):
        how = dict(group=group, async_op=asynchronous)
        for kind, size_of_call, call in (
            ("all_reduce", size, lambda: dist.all_reduce(ones(), **how)),
            ("all_gather", size, lambda: dist.all_gather(many(), ones(), **how)),
            ("all_gather", size, lambda: dist.all_gather_into_tensor(ones(4 * n), ones(), **how)),
            ("reduce_scatter", size * n, lambda: dist.reduce_scatter(ones(), many(), **how)),
            ("reduce_scatter", size * n, lambda: dist.reduce_scatter_tensor(ones(), ones(4 * n), **how)),
            ("all_to_all", size * n, lambda: dist.all_to_all(many(), many(), **how)),
            ("all_to_all", size * n, lambda: dist.all_to_all_single(ones(4 * n), ones(4 * n), **how)),
            ("broadcast", size, lambda: dist.broadcast(ones(), root, **how)),
            ("reduce", size, lambda: dist.reduce(ones(), root, **how)),
            ("gather", size, lambda: dist.gather(ones(), many() if at_root else None, root, **how)),
            ("scatter", size, lambda: dist.scatter(ones(), many() if at_root else None, root, **how)),
        ):
            note(group, kind, asynchronous, name, size_of_call)
            work = call()
            if asynchronous:
                work.wait()
    note(group, "barrier", dtype=None, size=0)
    dist.barrier(group=group)
    note(group, "barrier", True, dtype=None, size=0)
    dist.barrier(group=group, async_op=True).wait()

def objects(group):
    n, at_root, root = group.size(), group.rank() == 0, dist.get_global_rank(group, 0)
    noted_as = [["all_gather"] * 2, ["broadcast"] * 2, ["all_gather", "gather"], ["broadcast", "scatter", "scatter"]]
    calls = [
        lambda: dist.all_gather_object([None] * n, "x", group=group),
        lambda: dist.broadcast_object_list(["x"], root, group=group),
        lambda: dist.gather_object("x", [None] * n if at_root else None, root, group=group),
        lambda: dist.scatter_object_list([None], ["x"] * n if at_root else None, root, group=group),
    ]
    for kinds, call in zip(noted_as, calls):
        for kind in kinds:
            note(group, kind, False, "any", "any")
        call()

def coalesced(group):
    n = group.size()
    note(group, "all_reduce", size=20)
    dist.all_reduce_coalesced([torch.ones(2), torch.ones(3)], group=group)
    note(group, "all_gather", size=20)
    dist.all_gather_coalesced([[torch.ones(2), torch.ones(3)] for _ in range(n)], [torch.ones(2), torch.ones(3)], group)
    note(group, "all_reduce", size=20)
    with c10d._coalescing_manager(group):
        dist.all_reduce(torch.ones(2), group=group)
        dist.all_reduce(torch.ones(3), group=group)
    note(group, "all_gather", True, size=16)
    with c10d._coalescing_manager(group, async_ops=True) as manager:
        for _ in range(2):
            dist.all_gather_into_tensor(torch.ones(2 * n), torch.ones(2), group=group)
    manager.wait()

def point_to_point(group):
    peer = dist.get_global_rank(group, group.rank() ^ 1)
    first = RANK < peer
    for asynchronous in (False, True):
        note(group, "send" if first else "recv", True)
        if asynchronous:
            (dist.isend(torch.ones(4), peer, group) if first else dist.irecv(torch.ones(4), peer, group)).wait()
        else:
            dist.send(torch.ones(4), peer, group) if first else dist.recv(torch.ones(4), peer, group)
    note(group, "recv", True)
    note(group, "send", True)
    batch = [dist.P2POp(dist.irecv, torch.ones(4), peer, group), dist.P2POp(dist.isend, torch.ones(4), peer, group)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()

for group in (dist.group.WORLD, half):
    collectives(group, torch.float32, "Float")
    collectives(group, torch.float64, "Double")
    collectives(group, torch.int64, "Long")
    collectives(group, torch.uint8, "Byte")
    objects(group)
    coalesced(group)
    point_to_point(group)

# What a synchronous call left is settled: nothing of it is still open a moment later.
note(dist.group.WORLD, "all_reduce")
dist.all_reduce(torch.ones(4))
tell(noted=noted, half=half.group_name)

# Gloo's reduce_scatter gives a Work that never says that it is done: 5 MB each, if it were kept.
def resident_mb():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

grown = []
for number in range(41):
    work = dist.reduce_scatter_tensor(torch.ones(1 << 18), torch.ones(WORLD << 18), async_op=number % 2 == 1)
    if work is not None:
        work.wait()
    grown.append(resident_mb())
del work
tell(grown=grown[-1] - grown[10])

# A backward of a DDP model, last, for its count is the reducer's affair.
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
begun = time.monotonic_ns()
for _ in range(10):
    model(torch.ones(1, 4)).sum().backward()
tell(trained=[begun, time.monotonic_ns()])
# One that no rank waits for.
left = dist.all_reduce(torch.ones(4), async_op=True)
del left
dist.barrier()
time.sleep(0.2)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return run_ranks(tmp_path_factory.mktemp("mixed"), MIXED, RANKS).succeeded()


def in_words(operation: dict[str, Any]) -> list[Any]:
    """An operation record as the script noted the call."""
    dtype = operation["input_dtypes"][0] if operation["input_dtypes"] else None
    return [operation["process_group"][0], operation["kind"], operation["async"], dtype, operation["bytes"]]


def numbered(job: Job, rank: int) -> list[dict[str, Any]]:
    return [operation for operation in job.operations(rank) if not operation["is_p2p"]]


def default_group(job: Job, rank: int) -> list[dict[str, Any]]:
    return [operation for operation in numbered(job, rank) if operation["process_group"][0] == "0"]


def test_every_call_is_recorded_once_and_in_order(mixed: Job) -> None:
    """CASES 1.11, 2.13: the default group and two subgroups, all kinds, four dtypes, synchronous and not."""
    for rank in range(RANKS):
        noted = mixed.told[rank]["noted"]
        recorded = [in_words(operation) for operation in mixed.operations(rank)]
        assert len(noted) > 200
        for call, record in zip(noted, recorded, strict=False):
            assert [b if a == "any" else a for a, b in zip(call, record, strict=True)] == record
        assert len(recorded) >= len(noted)


def test_sequence_numbers_are_equal_on_all_ranks_of_a_group(mixed: Job) -> None:
    """CASES 2.13: two groups of equal size with the same calls do not cross."""
    by_rank = []
    for rank in range(RANKS):
        groups: dict[str, list[tuple[int, str]]] = {}
        for op in numbered(mixed, rank):
            groups.setdefault(op["process_group"][0], []).append((op["collective_seq_id"], op["kind"]))
        for numbers in groups.values():
            assert [number for number, _ in numbers] == list(range(len(numbers)))
        assert set(groups) == {"0", mixed.told[rank]["half"]}
        by_rank.append(groups)
    assert all(groups["0"] == by_rank[0]["0"] for groups in by_rank)
    for rank, peer in ((0, 2), (1, 3)):
        half = mixed.told[rank]["half"]
        assert half == mixed.told[peer]["half"]
        assert by_rank[rank][half] == by_rank[peer][half]


def test_point_to_point_has_no_number(mixed: Job) -> None:
    operations = [operation for operation in mixed.operations(0) if operation["is_p2p"]]
    assert {operation["kind"] for operation in operations} == {"send", "recv"}
    assert {operation["collective_seq_id"] for operation in operations} == {None}


def test_ranks_are_global_and_groups_have_their_name_and_description(mixed: Job) -> None:
    """CASES 1.10, 2.14: four ranks, three groups."""
    for rank in range(RANKS):
        assert {operation["rank"] for operation in mixed.operations(rank)} == {rank}
        names = {tuple(operation["process_group"]) for operation in mixed.operations(rank)}
        assert names == {("0", "default_pg"), (mixed.told[rank]["half"], "half")}
    groups = {group["name"]: group for group in mixed.of_type("group")}
    assert groups["0"]["ranks"] == [0, 1, 2, 3]
    for rank in range(2):
        assert groups[mixed.told[rank]["half"]]["ranks"] == [rank, rank + 2]
    assert {group["backend"] for group in mixed.report["groups"]} == {"gloo"}
    assert [group["ranks"] for group in mixed.report["groups"]] == [[0, 1, 2, 3], [0, 2], [1, 3]]


def test_times_are_in_order_and_every_collective_is_completed(mixed: Job) -> None:
    """CASES 2.14, 2.19."""
    for rank in range(RANKS):
        arrivals = [operation["arrival_ns"] for operation in mixed.operations(rank)]
        assert arrivals == sorted(arrivals)
        for op in mixed.operations(rank):
            assert 0 < op["arrival_ns"] <= op["issued_ns"], op
            assert op["state"] == "completed", op
            assert op["completed_ns"] >= op["arrival_ns"], op
            if op["waited_ns"] is not None:
                assert op["issued_ns"] <= op["waited_ns"] <= op["released_ns"], op


def test_nobody_completes_an_all_reduce_before_the_last_has_arrived(mixed: Job) -> None:
    """All ranks are on one clock here, so records of several ranks can be compared."""
    by_rank = [{op["collective_seq_id"]: op for op in default_group(mixed, rank)} for rank in range(RANKS)]
    compared = 0
    for number, op in by_rank[0].items():
        if op["kind"] in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"):
            same = [operations[number] for operations in by_rank]
            assert min(o["completed_ns"] for o in same) >= max(o["arrival_ns"] for o in same), same
            compared += 1
    assert compared > 80


def test_the_release_is_seen_by_kind_of_call(mixed: Job) -> None:
    """A synchronous call: its completion. A wait: its end. A backward: its end. Else it stays unknown."""
    groups = [default_group(mixed, rank) for rank in range(RANKS)]
    arrivals = [{op["collective_seq_id"]: op["arrival_ns"] for op in group} for group in groups]
    for rank in range(RANKS):
        begun, ended = mixed.told[rank]["trained"]
        in_backward = [op for op in mixed.operations(rank) if op["graph_task"] is not None]
        assert len({op["graph_task"] for op in in_backward}) == 10
        for op in mixed.operations(rank):
            if op["graph_task"] is not None:
                assert op["released_from"] == "graph_task", op
                last_arrival = max(times[op["collective_seq_id"]] for times in arrivals)
                assert begun <= op["arrival_ns"] <= last_arrival <= op["released_ns"] <= ended, op
            elif op["async"] and op["waited_ns"] is not None:
                assert op["released_from"] == "wait", op
            elif not op["async"]:
                assert (op["released_from"], op["released_ns"]) == ("completion", op["completed_ns"]), op
        unwaited = numbered(mixed, rank)[-2]
        assert (unwaited["released_ns"], unwaited["released_from"], unwaited["state"]) == (None, None, "completed")


def test_a_future_stays_the_source_whatever_kinds_came_before(mixed: Job) -> None:
    """Gloo's reduce_scatter has no Future. That does not make the completion of other kinds less exact."""
    for rank in range(RANKS):
        sources: dict[str, set[str]] = {}
        for op in numbered(mixed, rank):
            sources.setdefault(op["kind"], set()).add(op["completed_from"])
        assert sources.pop("reduce_scatter") == {"wait"}
        assert all(source == {"future"} for source in sources.values()), sources


def test_works_are_not_kept(mixed: Job) -> None:
    assert max(told["grown"] for told in mixed.told) < 60  # 150, if they were


def test_the_report_counts_what_the_records_hold(mixed: Job) -> None:
    assert mixed.report["collectives"] == sum(len(numbered(mixed, rank)) for rank in range(RANKS))
    assert mixed.report["records_dropped"] == 0
    assert mixed.report["ranks_reported"] == RANKS


# ---- Many ------------------------------------------------------------------------------------------------------------


def test_ten_thousand_operations_have_no_negative_duration_and_consistent_sums(tmp_path: Path) -> None:
    """CASES 2.15."""
    code = """
        import random
        init()
        draw = random.Random(7)
        small, large, begun, left = torch.ones(8), torch.ones(4096), time.monotonic_ns(), []
        for number in range(10_000):
            kind, tensor, asynchronous = draw.randrange(4), draw.choice((small, large)), draw.random() < 0.3
            calls = (dist.all_reduce, lambda t, **o: dist.broadcast(t, number % WORLD, **o),
                     lambda t, **o: dist.all_gather_into_tensor(torch.empty(WORLD * t.numel()), t, **o),
                     lambda t, **o: dist.reduce(t, number % WORLD, **o))
            work = calls[kind](tensor.fill_(1), async_op=asynchronous)
            if asynchronous:
                left.append(work)
            if len(left) == 8:
                for work in left:
                    work.wait()
                left.clear()
        for work in left:
            work.wait()
        tell(wall=time.monotonic_ns() - begun)
        dist.destroy_process_group()
        """
    job = run_ranks(tmp_path, code, 2).succeeded()
    for rank in range(2):
        operations = job.operations(rank)
        assert len(operations) == 10_000
        wall = job.told[rank]["wall"]
        blocked = 0
        for before, op in pairwise(operations):
            assert before["arrival_ns"] <= before["issued_ns"] <= op["arrival_ns"]
            assert 0 <= before["completed_ns"] - before["arrival_ns"] <= wall
            if not before["async"]:
                assert before["completed_ns"] <= op["arrival_ns"]
                blocked += before["released_ns"] - before["arrival_ns"]
        assert blocked <= operations[-1]["arrival_ns"] - operations[0]["arrival_ns"] <= wall
    assert job.report["collectives"] == 20_000
    assert job.report["records_dropped"] == 0
