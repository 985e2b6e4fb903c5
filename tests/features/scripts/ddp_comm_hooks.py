"""DDP with no hook, with those built in, in C++ and in Python, and with one of the script's own."""

import torch.distributed as dist
from model import small_model, train
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")


def own_hook(_state, bucket):
    reduced = dist.all_reduce(bucket.buffer() / dist.get_world_size(), async_op=True).get_future()
    return reduced.then(lambda future: future.value()[0])


powersgd = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
for state, hook in (
    (None, None),
    (None, default_hooks.allreduce_hook),
    (None, default_hooks.fp16_compress_hook),
    (powersgd, powerSGD_hook.powerSGD_hook),
    (None, own_hook),
):
    model = DistributedDataParallel(small_model(), bucket_cap_mb=0.001)
    if hook:
        model.register_comm_hook(state, hook)
    print(hook.__name__ if hook else "no hook")
    train(model)

model = DistributedDataParallel(small_model())
model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
print("built in, C++")
train(model)
dist.destroy_process_group()
