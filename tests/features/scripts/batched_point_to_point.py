"""A ring: each rank sends to the next and receives from the one before, in batches; and plain calls."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
after, before = (rank + 1) % size, (rank - 1) % size

passed = torch.full((1000,), float(rank))
for _ in range(5):
    received = torch.empty(1000)
    batch = [dist.P2POp(dist.irecv, received, before), dist.P2POp(dist.isend, passed, after)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    passed = received + 1

if rank % 2 == 0:
    dist.send(passed, after)
    dist.recv(received, before)
else:
    dist.recv(received, before)
    dist.send(passed, after)
work = dist.isend(passed, after)
dist.irecv(received, before).wait()
work.wait()

print(rank, passed.sum().item(), received.sum().item())
dist.destroy_process_group()
