"""ZeroRedundancyOptimizer: the optimizer's state in shards."""

import torch
import torch.distributed as dist
from model import small_model, train
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(small_model())
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
train(model, optimizer)
optimizer.consolidate_state_dict(to=0)
if dist.get_rank() == 0:
    print(sorted(optimizer.state_dict()["state"]))
dist.destroy_process_group()
