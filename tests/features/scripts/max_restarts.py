"""`torchrun --max-restarts`: rank 1 fails in the first attempt; the second goes on from the checkpoint."""

import os
import sys
import time

import torch
import torch.distributed as dist
from model import small_model, train
from torch.nn.parallel import DistributedDataParallel


def is_there(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


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
processes = [None] * dist.get_world_size()
dist.all_gather_object(processes, os.getpid())
dist.destroy_process_group()
if attempt == 0 and rank == 1:
    while is_there(processes[0]):  # it has to end by itself, not by torchrun
        time.sleep(0.05)
    sys.exit(3)
