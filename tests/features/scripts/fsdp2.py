"""`fully_shard` (FSDP2): each layer, then the whole."""

import torch
import torch.distributed as dist
from model import small_model, train
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
model = small_model()
for layer in model:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer, mesh=mesh)
train(fully_shard(model, mesh=mesh))
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
print(dist.get_rank(), norm.item().hex())
dist.destroy_process_group()
