"""DDP with no hook, with those built in, in C++ and in Python, and with one of the script's own."""

import torch.distributed as dist
from model import small_model, train
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")


def own_hook(_state, bucket):
    reduced = dist.all_reduce(bucket.buffer() / dist.get_world_size(), async_op=True).get_future()
    return reduced.then(lambda future: future.value()[0])


# PowerSGD makes its later collectives in callbacks, and waits for them there: with several buckets their order differs
# by rank on gloo, or both of its threads wait. So this one has a single bucket.
powersgd = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
local = post_localSGD_hook.PostLocalSGDState(None, dist.new_group(), start_localSGD_iter=2)
small, whole = 0.001, 25
for state, hook, megabytes in (
    (None, None, small),
    (None, default_hooks.allreduce_hook, small),
    (None, default_hooks.fp16_compress_hook, small),
    (powersgd, powerSGD_hook.powerSGD_hook, whole),
    (local, post_localSGD_hook.post_localSGD_hook, small),
    (None, own_hook, small),
):
    model = DistributedDataParallel(small_model(), bucket_cap_mb=megabytes)
    if hook:
        model.register_comm_hook(state, hook)
    print(hook.__name__ if hook else "no hook")
    train(model)

for built_in in (dist.BuiltinCommHookType.ALLREDUCE, dist.BuiltinCommHookType.FP16_COMPRESS):
    model = DistributedDataParallel(small_model(), bucket_cap_mb=small)
    model._register_builtin_comm_hook(built_in)
    print("in C++:", built_in)
    train(model)
dist.destroy_process_group()
