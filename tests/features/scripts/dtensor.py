"""DTensor: from one placement to another, and arithmetic on shards."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

dist.init_process_group("gloo")
size = dist.get_world_size()
mesh = init_device_mesh("cpu", (size,))
whole = torch.arange(32 * size * size, dtype=torch.float32).reshape(4 * size, 8 * size)

tensor = distribute_tensor(whole, mesh, [Shard(0)])
for placement in (Shard(1), Replicate(), Shard(0)):
    tensor = tensor.redistribute(mesh, [placement])
    print(dist.get_rank(), placement, tensor.to_local().sum().item())
other = distribute_tensor(whole.t().contiguous(), mesh, [Shard(1)])
product = tensor.redistribute(mesh, [Shard(1)]) @ other.redistribute(mesh, [Shard(0)])
print(dist.get_rank(), product.placements == (Partial(),), product.full_tensor().sum().item())

leaf = distribute_tensor(whole, mesh, [Shard(0)]).requires_grad_()
leaf.redistribute(mesh, [Replicate()]).square().sum().backward()
print(dist.get_rank(), leaf.grad.full_tensor().sum().item())
dist.destroy_process_group()
