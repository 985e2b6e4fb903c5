"""`monitored_barrier`: with rank 1 late, and with a timeout."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
ones = torch.ones(1)
for _ in range(3):
    if dist.get_rank() == 1:
        time.sleep(0.05)
    dist.monitored_barrier()
    dist.all_reduce(ones)
dist.monitored_barrier(timeout=timedelta(seconds=10), wait_all_ranks=True)
print(dist.get_rank(), ones.item())
dist.destroy_process_group()
