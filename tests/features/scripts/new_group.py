"""Groups of all kinds: with a description and a timeout, made by their members alone, in equal parts."""

from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def summed(group):
    value = torch.full((4,), float(rank + 1))
    dist.all_reduce(value, group=group)
    return value[0].item()


halves = [
    dist.new_group(list(range(part, size, 2)), timeout=timedelta(seconds=30), group_desc="half") for part in range(2)
]
print(rank, "half", summed(halves[rank % 2]))

pair = [rank // 2 * 2, rank // 2 * 2 + 1]
print(rank, "pair", summed(dist.new_group(pair, use_local_synchronization=True)))

mine, _ = dist.new_subgroups(group_size=2)
print(rank, "subgroup", summed(mine))

short_lived = dist.new_group()
print(rank, "short-lived", summed(short_lived))
dist.destroy_process_group(short_lived)
print(rank, "all", summed(None))
dist.destroy_process_group()
