"""Collectives, with TORCH_DISTRIBUTED_DEBUG=DETAIL."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
pair = dist.new_group()
for group in (None, pair):
    value, gathered = torch.ones(4) + rank, torch.empty(4 * size)
    for _ in range(5):
        dist.all_reduce(value, group=group)
    dist.broadcast(value, 0, group=group)
    dist.all_gather_into_tensor(gathered, value, group=group)
    dist.barrier(group=group)
    print(rank, value.tolist(), gathered.sum().item())
dist.destroy_process_group()
