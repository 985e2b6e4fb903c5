"""A pipeline of as many stages as ranks, by two schedules."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cpu")
last = rank == size - 1


def loss_of(output, target):
    return (output - target).square().mean()


for schedule_of in (ScheduleGPipe, Schedule1F1B):
    torch.manual_seed(rank)
    layer = torch.nn.Linear(8, 8)
    schedule = schedule_of(PipelineStage(layer, rank, size, device), n_microbatches=4, loss_fn=loss_of)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for step in range(3):
        torch.manual_seed(step)
        batch, target, losses = torch.rand(8, 8), torch.rand(8, 8), []
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(batch)
        elif last:
            schedule.step(target=target, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        print(rank, schedule_of.__name__, step, [loss.item().hex() for loss in losses])
    print(rank, layer.weight.sum().item().hex())
dist.destroy_process_group()
