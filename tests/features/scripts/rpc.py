"""RPC beside the process group, on the same address and port."""

import torch
import torch.distributed as dist
from torch.distributed import rpc

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size)
for step in range(3):
    value = rpc.rpc_sync(f"worker{(rank + 1) % size}", torch.add, args=(torch.ones(2), rank))
    dist.all_reduce(value)
    print(rank, step, value.tolist())
rpc.shutdown()
dist.barrier()
dist.destroy_process_group()
