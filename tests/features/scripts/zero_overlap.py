"""ZeroRedundancyOptimizer that overlaps with DDP: torch refuses it on gloo."""

import torch
import torch.distributed as dist
from model import small_model
from torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(small_model())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, overlap_with_ddp=True)
try:
    model.register_comm_hook(None, hook_with_zero_step(allreduce_hook, model, optimizer))
except RuntimeError as error:
    print(f"refused: {error}")
dist.destroy_process_group()
