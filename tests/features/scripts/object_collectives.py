"""All object collectives, and objects from rank to rank."""

import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()

everyone = [None] * size
dist.all_gather_object(everyone, {"rank": rank, "text": "x" * rank})
roots = [f"from {rank}", rank]
dist.broadcast_object_list(roots, src=1)
mine = [None]
dist.scatter_object_list(mine, [f"to {peer}" for peer in range(size)], src=0)
at_root = [None] * size if rank == 0 else None
dist.gather_object(("gathered", rank), at_root, dst=0)
passed = [f"passed on by {rank}", [rank]]
if rank == 0:
    dist.send_object_list(passed, dst=1)
elif rank == 1:
    dist.recv_object_list(passed, src=0)

print(rank, everyone, roots, mine, at_root, passed)
dist.destroy_process_group()
