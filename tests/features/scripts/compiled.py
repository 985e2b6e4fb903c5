"""`torch.compile` with the backend named by the argument: of DDP, and of collectives on two groups."""

import sys

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from model import small_model, train
from torch.nn.parallel import DistributedDataParallel

BACKEND = sys.argv[1]

dist.init_process_group("gloo")
train(torch.compile(DistributedDataParallel(small_model()), backend=BACKEND))

for group in (dist.group.WORLD, dist.new_group()):

    @torch.compile(backend=BACKEND, fullgraph=True)
    def functionally(tensor, group=group):
        gathered = functional.all_gather_tensor(tensor * 2, 0, group)
        return functional.all_reduce(gathered, "sum", group) + 1

    @torch.compile(backend=BACKEND)
    def in_place(tensor, group=group):
        tensor = tensor * 2
        dist.all_reduce(tensor, group=group)
        return tensor + 1

    ones = torch.ones(4) + dist.get_rank()
    print(dist.get_rank(), functionally(ones).tolist(), in_place(ones).tolist())
dist.destroy_process_group()
