"""`split_group`: parts of the default group, and a part of a part."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()


def summed(group):
    value = torch.full((4,), float(rank + 1))
    dist.all_reduce(value, group=group)
    return value[0].item()


print(rank, "all", summed(None))
half = dist.split_group(split_ranks=[[0, 3], [1, 2]])
print(rank, "half", dist.get_process_group_ranks(half), summed(half))
alone = dist.split_group(half, split_ranks=[[0], [1]])
print(rank, "alone", dist.get_process_group_ranks(alone), summed(alone))
dist.destroy_process_group()
