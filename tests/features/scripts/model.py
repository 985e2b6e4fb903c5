"""The small model that these scripts train, the same on all ranks, and its seeded data, of each rank its own."""

import torch
import torch.distributed as dist


def small_model():
    torch.manual_seed(3)
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    return torch.nn.Sequential(linear(16, 32), relu(), linear(32, 32), relu(), linear(32, 4))


def batch(step):
    generator = torch.Generator().manual_seed(100 * step + dist.get_rank())
    return torch.rand(8, 16, generator=generator)


def train(model, optimizer=None, steps=4):
    """Trains, and prints each step's loss in full: two runs agree bit for bit or not at all."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(batch(step)).square().mean()
        loss.backward()
        optimizer.step()
        print(dist.get_rank(), step, loss.item().hex())
