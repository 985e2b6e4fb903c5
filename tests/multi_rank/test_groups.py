"""Groups of all kinds, on four ranks: each has one wrapped backend, and its operations are in the records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ranks import Job, run_ranks

RANKS = 4

GROUPS = """
import gc, warnings
warnings.simplefilter("ignore", FutureWarning)
warnings.simplefilter("error", UserWarning)
import torch.distributed.checkpoint as dcp
import torch.distributed.optim
from torch.distributed.device_mesh import init_device_mesh
from torch_straggler import register

built = []
def spy(opts, options, plain=register.torch_creator("gloo")):
    built.append(opts.group_id)
    return plain(opts, options)
register.torch_creators["gloo"] = spy

def threads():
    return len(os.listdir("/proc/self/task"))

def seconds(call):
    begun = time.monotonic()
    out = call()
    return out, time.monotonic() - begun

def twenty_groups(backend):
    # Threads with 20 groups, and after they are gone.
    init(backend)
    del built[:]
    groups = [dist.new_group() for _ in range(20)]
    for group in groups:
        dist.all_reduce(torch.ones(1), group=group)
    counted, names = threads(), list(built)
    dist.destroy_process_group()
    del groups, group
    gc.collect()
    return {"threads": counted, "after": threads(), "built": len(set(names)), "calls": len(names)}

tell(gloo=twenty_groups("gloo"), ours=twenty_groups("straggler_gloo"))

def zero(group):
    # Parameters after three steps of ZeRO: each rank of the group owns some, and sends them to the other.
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    optimizer = torch.distributed.optim.ZeroRedundancyOptimizer(
        model.parameters(), torch.optim.Adam, process_group=group, lr=0.1
    )
    for step in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 4), RANK + step + 1.0)).square().mean().backward()
        optimizer.step()
    return [parameter.tolist() for parameter in model.parameters()]

# ---- A plain child of a wrapped group, and the reverse; ranks that are not in it go on at once -----------------------

for parent, child in (("straggler_gloo", "gloo"), ("gloo", "straggler_gloo")):
    init(parent, timeout=timedelta(seconds=20))
    group, took = seconds(lambda: dist.new_group([0, 2], backend=child))
    found = None
    if RANK in (0, 2):
        dist.all_reduce(torch.ones(1), group=group)
        found = type(backend_of(group)).__name__
        tell(**{f"zero on {child}": zero(group)})
    tell(**{f"{child} in {parent}": [type(backend_of()).__name__, found], f"seconds of {child}": took})
    dist.barrier()
    dist.destroy_process_group()

# ---- The groups of the records: the last session ---------------------------------------------------------------------

tell(last_session=time.monotonic_ns())
init("cpu:straggler_gloo")
made = {}

def use(name, group):
    ones = torch.ones(4)
    dist.all_reduce(ones, group=group)
    ranks, kind = dist.get_process_group_ranks(group), type(backend_of(group)).__name__
    made[name] = [group.group_name, ranks, ones[0].item(), kind]

mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
use("outer", mesh.get_group("outer"))
use("inner", mesh.get_group("inner"))
use("subgroup", dist.new_subgroups(2)[0])
pair = dist.new_group([1, 3], backend="straggler_gloo", timeout=timedelta(seconds=7), group_desc="pair")
if RANK in (1, 3):
    use("pair", pair)
    dist.all_reduce(torch.ones(4), group=pair)
    backends = (backend_of(pair), backend_of(pair).inner)
    tell(pair=[pair.group_desc, *(backend.options._timeout.total_seconds() for backend in backends)])
use("split", dist.split_group(split_ranks=[[0, 3], [1, 2]]))

model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4), process_group=mesh.get_group("inner"))
model(torch.ones(1, 4)).sum().backward()
sharded = torch.distributed.fsdp.fully_shard(torch.nn.Linear(4, 4), mesh=mesh["outer"])
sharded(torch.ones(1, 4)).sum().backward()

# Rank 2 and 3 save a checkpoint, the second time from a thread, while all ranks use the default group.
saving, loaded = dist.new_group([2, 3]), {"weight": torch.zeros(4)}
if RANK in (2, 3):
    dcp.save({"weight": torch.full((4,), 3.0)}, checkpoint_id="first", process_group=saving)
    saved = dcp.async_save({"weight": torch.full((4,), 5.0)}, checkpoint_id="second", process_group=saving)
for _ in range(20):
    dist.all_reduce(torch.ones(1))
if RANK in (2, 3):
    saved.result()
    dcp.load(loaded, checkpoint_id="second", process_group=saving)
    number = saving._get_sequence_number_for_group()
    tell(saved=[loaded["weight"].tolist(), saving.group_name, number])

tell(made=made)
for group in (dist.group.WORLD, mesh.get_group("inner")):
    backend = backend_of(group)
    before = [group._get_sequence_number_for_group(), backend.inner._get_sequence_number_for_group()]
    for _ in range(100):
        dist.all_reduce(torch.ones(1), group=group)
    after = [group._get_sequence_number_for_group(), backend.inner._get_sequence_number_for_group()]
    tell(**{f"sequence {group.group_name}": [before[0] == before[1], after[0] == after[1], after[0] - before[0]]})
dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return run_ranks(tmp_path_factory.mktemp("groups"), GROUPS, RANKS, seconds=90).succeeded()


def operations_of_last_session(job: Job, rank: int) -> list[dict[str, Any]]:
    return [op for op in job.operations(rank) if op["arrival_ns"] > job.told[rank]["last_session"]]


def test_twenty_groups_build_twenty_inner_backends_and_no_thread_each(groups: Job) -> None:
    """CASES 1.09, 5.06: the session's own threads are all there is more than on gloo, and all end."""
    for rank, told in enumerate(groups.told):
        ours, gloo = told["ours"], told["gloo"]
        assert (ours["built"], ours["calls"]) == (20, 20)
        assert gloo["threads"] < ours["threads"] <= gloo["threads"] + (3 if rank == 0 else 1)
        assert ours["after"] == gloo["after"]


def test_a_plain_group_in_a_wrapped_one_and_the_reverse_keep_nobody_waiting(groups: Job) -> None:
    """CASES 1.08."""
    for rank, told in enumerate(groups.told):
        inside = rank in (0, 2)
        assert told["gloo in straggler_gloo"] == ["StragglerBackend", "ProcessGroupGloo" if inside else None]
        assert told["straggler_gloo in gloo"] == ["ProcessGroupGloo", "StragglerBackend" if inside else None]
        assert max(told["seconds of gloo"], told["seconds of straggler_gloo"]) < 5


def test_both_dimensions_of_a_mesh_subgroups_and_splits_are_wrapped_and_right(groups: Job) -> None:
    """CASES 1.05, 1.11."""
    ranks = {
        "outer": ([0, 2], [1, 3], [0, 2], [1, 3]),
        "inner": ([0, 1], [0, 1], [2, 3], [2, 3]),
        "subgroup": ([0, 1], [0, 1], [2, 3], [2, 3]),
        "split": ([0, 3], [1, 2], [1, 2], [0, 3]),
    }
    for rank, told in enumerate(groups.told):
        for name, members in ranks.items():
            assert told["made"][name][1:] == [members[rank], 2, "StragglerBackend"], name


def test_every_group_appears_in_the_records_with_its_operations(groups: Job) -> None:
    """CASES 1.11: once each; those of DDP too. The reports name global ranks."""
    last = groups.of_type("report")[-1]
    reported = {group["name"]: group["ranks"] for group in last["groups"]}
    for rank, told in enumerate(groups.told):
        by_group: dict[str, list[str]] = {}
        for op in operations_of_last_session(groups, rank):
            by_group.setdefault(op["process_group"][0], []).append(op["kind"])
        for name, (group, members, *_) in told["made"].items():
            assert reported[group] == members
            if name in ("subgroup", "split"):
                assert by_group[group] == ["all_reduce"], name
        outer = told["made"]["outer"][0]
        assert by_group[outer] == ["all_reduce", "all_gather", "reduce_scatter"]  # by hand, and FSDP's
        inner = told["made"]["inner"][0]
        assert by_group[inner].count("all_reduce") == 1 + 1 + 100  # by hand, the backward, the counted ones
        assert {"broadcast", "all_gather"} & set(by_group[inner])


def test_zero_on_a_subgroup_trains_as_on_gloo(groups: Job) -> None:
    """CASES 1.30: ranks 0 and 2 of four, so that a rank in the group is not one in the job."""
    for rank in (0, 2):
        told = groups.told[rank]
        assert told["zero on straggler_gloo"] == told["zero on gloo"]
    assert groups.told[0]["zero on gloo"] == groups.told[2]["zero on gloo"]


def test_a_checkpoint_of_a_subgroup_from_a_thread_does_not_mix_with_training(groups: Job) -> None:
    """CASES 1.45: on ranks 2 and 3, saved twice and loaded; each group's operations are in its own order, once each."""
    for rank in (2, 3):
        loaded, name, number = groups.told[rank]["saved"]
        assert loaded == [5.0] * 4
        numbers: dict[str, list[int]] = {}
        for op in operations_of_last_session(groups, rank):
            numbers.setdefault(op["process_group"][0], []).append(op["collective_seq_id"])
        assert len(numbers[name]) > 3
        assert numbers[name][-1] - numbers[name][0] + 1 == len(numbers[name]) == number
        assert all(each == list(range(each[0], each[0] + len(each))) for each in numbers.values())


def test_timeout_description_and_ranks_reach_a_subgroup(groups: Job) -> None:
    """CASES 1.10."""
    for rank in (1, 3):
        assert groups.told[rank]["pair"] == ["pair", 7, 7]
        name = groups.told[rank]["made"]["pair"][0]
        recorded = [
            op["process_group"] for op in operations_of_last_session(groups, rank) if op["process_group"][0] == name
        ]
        assert recorded == [[name, "pair"]] * 2
    reported = [group for group in groups.of_type("report")[-1]["groups"] if group["ranks"] == [1, 3]]
    assert [group["desc"] for group in reported if group["name"] == name] == ["pair"]


def test_sequence_numbers_are_the_inners(groups: Job) -> None:
    """CASES 1.50."""
    for told in groups.told:
        assert [value for key, value in told.items() if key.startswith("sequence")] == [[True, True, 100]] * 2


# ---- Beside gloo -----------------------------------------------------------------------------------------------------


def test_under_torchs_debug_mode_a_mismatch_is_found_as_on_gloo(beside_gloo: Callable[..., tuple[Job, Job]]) -> None:
    """CASES 1.18, 1.50."""
    code = """
        init(timeout=timedelta(seconds=20))
        ones = torch.ones(2)
        for _ in range(10):
            dist.all_reduce(ones.fill_(1))
        tell(ones=ones.tolist(), number=dist.group.WORLD._get_sequence_number_for_group())
        dist.all_reduce(torch.ones(2 + RANK))
        """
    ours, gloos = beside_gloo(code, TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert ours.told == gloos.told
    assert ours.told[0]["ones"] == [2, 2]
    assert ours.exit_codes == gloos.exit_codes == [1, 1], ours.text() + gloos.text()
    assert [rank.error for rank in ours.ranks] == [rank.error for rank in gloos.ranks] == ["RuntimeError"] * 2
    assert all("mismatch" in rank.stderr for rank in ours.ranks)


def test_two_groups_used_in_opposite_order_finish_as_on_gloo(tmp_path: Path) -> None:
    """CASES 2.33: the wrapper adds nothing that makes one operation wait for another."""
    code = """
        for backend in ("gloo", "straggler_gloo"):
            init(backend, timeout=timedelta(seconds=20))
            pair = [dist.new_group(), dist.new_group()]
            ones = [torch.ones(4), torch.ones(4)]
            order = (0, 1) if RANK == 0 else (1, 0)
            works = [dist.all_reduce(ones[number], group=pair[number], async_op=True) for number in order]
            for work in works:
                work.wait()
            tell(**{backend: [each.tolist() for each in ones]})
            dist.destroy_process_group()
        """
    for told in run_ranks(tmp_path, code, 2, seconds=40).succeeded().told:
        assert told["gloo"] == told["straggler_gloo"] == [[2.0] * 4] * 2
