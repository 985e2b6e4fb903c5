"""DeviceMesh of one and of two dimensions, sub-meshes, and two dimensions made one."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

dist.init_process_group("gloo")
rank = dist.get_rank()


def summed(name, group):
    value = torch.full((4,), float(rank + 1))
    dist.all_reduce(value, group=group)
    print(rank, name, dist.get_process_group_ranks(group), value[0].item())


line = init_device_mesh("cpu", (4,), mesh_dim_names=("line",))
summed("line", line.get_group())
square = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
summed("outer", square.get_group("outer"))
summed("inner", square["inner"].get_group())
summed("flat", square["outer", "inner"]._flatten("flat").get_group())
dist.destroy_process_group()
