"""HSDP: `fully_shard` on a mesh of two dimensions, copies of shards."""

import torch
import torch.distributed as dist
from model import small_model, train
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("copies", "shards"))
model = small_model()
for layer in model:
    if isinstance(layer, torch.nn.Linear):
        fully_shard(layer, mesh=mesh)
train(fully_shard(model, mesh=mesh))
dist.destroy_process_group()
