"""`torchrun --max-restarts`: rank 1 fails in the first attempt; the second goes on from the checkpoint."""

import os
import sys
import time

import torch
import torch.distributed as dist
from model import small_model, train
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, attempt = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
model = small_model()
if attempt > 0:
    model.load_state_dict(torch.load("checkpoint.pt", weights_only=True))
print(rank, "attempt", attempt)
model = DistributedDataParallel(model)
train(model)
if rank == 0:
    torch.save(model.module.state_dict(), "checkpoint.pt")
dist.barrier()
dist.destroy_process_group()
if attempt == 0 and rank == 1:
    time.sleep(3)  # so that rank 0 has ended, and is not ended
    sys.exit(3)
