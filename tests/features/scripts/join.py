"""Uneven inputs: the `Join` context, around DDP and ZeroRedundancyOptimizer."""

import torch
import torch.distributed as dist
from model import small_model, train
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(small_model())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
with Join([model, optimizer]):
    train(model, optimizer, steps=2 + 2 * dist.get_rank())
print(dist.get_rank(), sum(parameter.sum() for parameter in model.parameters()).item().hex())
dist.destroy_process_group()
