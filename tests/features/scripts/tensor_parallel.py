"""Tensor parallel: columns then rows, plain and along the sequence."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.up = torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)

    def forward(self, tokens):
        return self.down(self.up(self.norm(tokens)).relu())


plain = {"up": ColwiseParallel(), "down": RowwiseParallel()}
along_the_sequence = {
    "norm": SequenceParallel(),
    "up": ColwiseParallel(input_layouts=Shard(1)),
    "down": RowwiseParallel(output_layouts=Replicate()),
}
for name, plan in (("plain", plain), ("along the sequence", along_the_sequence)):
    torch.manual_seed(3)
    block = parallelize_module(Block(), mesh, plan)
    if name != "plain":
        shards = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(1))
        parallelize_module(block, mesh, shards)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    for step in range(3):
        torch.manual_seed(step)
        optimizer.zero_grad()
        loss = block(torch.rand(2, 8, 16)).square().mean()
        loss.backward()
        optimizer.step()
        print(dist.get_rank(), name, step, loss.item().hex())
dist.destroy_process_group()
