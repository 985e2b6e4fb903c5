"""torch asks a group for its backend's name, or its type, in many places: what each of them does under our names.

The same questions to a group of `gloo`, of `straggler_gloo`, and of `gloo` once the name is taken over. CASES 1.07,
1.18, 1.20, 1.24, 1.25, 1.28 to 1.30, 2.17.
"""

import json
from collections.abc import Callable

ASK = """
import json, warnings
from datetime import timedelta
warnings.simplefilter("ignore")
import torch_straggler
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as with_autograd
from torch.distributed import distributed_c10d as c10d
from torch.distributed._shard import sharded_tensor, sharding_spec
from torch.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import profile

def kind(backend):
    return type(getattr(backend, "inner", backend)).__name__

def model():
    return DistributedDataParallel(torch.nn.Linear(2, 1))

def preferred_device():
    tensor = sharded_tensor.ones(sharding_spec.ChunkShardingSpec(0, ["rank:0/cpu"]), 4, 2)
    try:
        return tensor._get_preferred_device().type
    except RuntimeError as error:
        return "cuda" if "NVIDIA" in str(error) else str(error)

def overlapping_zero():
    ddp = model()
    zero = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
    ddp_zero_hook.hook_with_zero_step(default_hooks.allreduce_hook, ddp, zero)
    return "taken"

def profiled(ask):
    with profile() as traced:
        dist.all_reduce(torch.ones(2))
    return ask(traced)

def exchanged():
    leaf, out = torch.ones(2, requires_grad=True), [torch.zeros(2)]
    with_autograd.all_to_all(out, [leaf], group=dist.group.WORLD)[0].sum().backward()
    return [out[0].tolist(), leaf.grad.tolist()]

def gathered():
    leaf = torch.ones(2, requires_grad=True)
    functional.all_gather_tensor_autograd(leaf, 0, dist.group.WORLD).sum().backward()
    return leaf.grad.tolist()

def objects():
    everyone = [None]
    dist.all_gather_object(everyone, {"rank": 0})
    dist.broadcast_object_list(everyone, 0)
    return [c10d._get_object_coll_device(), everyone]

def in_debug_mode():
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        checked = backend_of(dist.new_group())
        return [type(checked).__name__, kind(checked.wrapped_pg)]
    finally:
        dist.set_debug_level(dist.DebugLevel.OFF)

def timeout_of(**options):
    return backend_of(dist.new_group(**options)).options._timeout.total_seconds()

def gloo_options(seconds):
    options = dist.ProcessGroupGloo._Options()
    options._timeout = timedelta(seconds=seconds)
    return options

def split(**options):
    group = dist.split_group(split_ranks=[[0]], **options)
    return [kind(backend_of(group)), dist.get_backend(group) == dist.get_backend()]

foreign = torch._C._distributed_c10d.Backend.Options("foreign")
QUESTIONS = {
    "get_backend": lambda: dist.get_backend(),
    "the group's name": lambda: dist.group.WORLD.name(),
    "the backend's name": lambda: backend_of().name(),
    "DDP's log": lambda: model()._get_ddp_logging_data()["backend_name"],
    "the profiler's header": lambda: profiled(lambda traced: traced._get_distributed_info()["backend"]),
    "the profiler's events": lambda: profiled(lambda traced: [e.name for e in traced.events() if "reduce" in e.name]),
    "ZeRO that overlaps with DDP": overlapping_zero,
    "a ShardedTensor's device": preferred_device,
    "SyncBatchNorm": lambda: torch.nn.SyncBatchNorm(2)(torch.ones(2, 2)).sum().item(),
    "all_to_all with gradients": exchanged,
    "functional all_gather with gradients": gathered,
    "objects": objects,
    "monitored_barrier": lambda: dist.monitored_barrier(timeout=timedelta(seconds=5)),
    "barrier": lambda: [dist.barrier(), dist.group.WORLD.barrier().wait()],
    "DETAIL": in_debug_mode,
    "the default timeout": lambda: [c10d._get_default_timeout(dist.get_backend()).total_seconds(), timeout_of()],
    "a timeout and options": lambda: timeout_of(timeout=timedelta(seconds=5), pg_options=gloo_options(9)),
    "a timeout in options": lambda: timeout_of(pg_options=gloo_options(9)),
    "wrong options": lambda: timeout_of(pg_options="wrong"),
    "split": split,
    "split with wrong options": lambda: split(pg_options=foreign),
    "split by name": lambda: split(backend=dist.get_backend()),
    "the backend's own split": lambda: kind(backend_of().split(dist.HashStore(), [0], foreign)),
    "devices": lambda: sorted(device.type for device in dist.group.WORLD._device_types),
}

def answer(question):
    try:
        return question()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:53]}"

answers = {}
for asked, name in (("gloo", "gloo"), ("own", "straggler_gloo"), ("taken", "gloo")):
    if asked == "taken":
        torch_straggler.intercept("gloo")
    init(name)
    answers[asked] = {what: answer(question) for what, question in QUESTIONS.items()}
    dist.destroy_process_group()
print(json.dumps(answers))
"""

# Where the answer is another than on gloo: on gloo, under our own name, under the name that was taken over.
REFUSED = "RuntimeError: Gloo backend using Overlapping DDP with ZeRO may meet"
OTHERWISE = {
    # The name is what the script asked for.
    "get_backend": ("gloo", "straggler_gloo", "gloo"),
    "the profiler's header": ("gloo", "straggler_gloo", "gloo"),
    # The type is CUSTOM: where it is GLOO, DDP reads the members of torch's own class. On CUDA, SyncBatchNorm takes the
    # way of all others; a ShardedTensor asks for an accelerator on a rank that has no shard of it.
    "the group's name": ("gloo", "custom", "custom"),
    "DDP's log": ("gloo", "custom", "custom"),
    # What torch refuses or chooses by the name alone. With `cpu:straggler_gloo` the device is the CPU.
    "ZeRO that overlaps with DDP": (REFUSED, "taken", REFUSED),
    "a ShardedTensor's device": ("cpu", "cuda", "cpu"),
}


def test_what_torch_does_by_name_or_type_is_the_same_or_known(succeeds: Callable[..., str]) -> None:
    told = json.loads(succeeds(ASK).splitlines()[-1])
    answers = {what: tuple(told[name][what] for name in ("gloo", "own", "taken")) for what in told["gloo"]}
    assert len(answers) > 20
    assert {what: given for what, given in answers.items() if len(set(map(str, given))) > 1} == OTHERWISE
    raised = {what for what, (gloos, *_) in answers.items() if "Error: " in str(gloos)}
    assert raised == {"ZeRO that overlaps with DDP", "SyncBatchNorm"}  # the latter on a CPU, whatever the backend
