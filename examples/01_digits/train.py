"""Trains a small convolutional network on scikit-learn's handwritten digits with DistributedDataParallel.

An ordinary script: torchrun starts it on several ranks, rank 0 prints the accuracy on held-out digits.

    torchrun --nproc-per-node=4 examples/01_digits/train.py --epochs 20
"""

import argparse
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

HELD_OUT = 297


def digits() -> tuple[TensorDataset, TensorDataset]:
    """1,500 digits of 8 by 8 pixels to train on and 297 held out, shuffled alike on all ranks."""
    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    images, labels = images[order], labels[order]
    return TensorDataset(images[HELD_OUT:], labels[HELD_OUT:]), TensorDataset(images[:HELD_OUT], labels[:HELD_OUT])


def network(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, width, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, width, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * width * 4 * 4, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


@torch.no_grad()
def accuracy(model: nn.Module, dataset: TensorDataset) -> float:
    images, labels = dataset.tensors
    model.eval()
    correct = (model(images).argmax(dim=1) == labels).float().mean().item()
    model.train()
    return correct


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, help="stop after this many steps")
    parser.add_argument("--batch-size", type=int, default=32, help="per rank")
    parser.add_argument("--width", type=int, default=64, help="channels of the first layers")
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    train, held_out = digits()
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=args.batch_size, sampler=sampler, drop_last=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(network(args.width))
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    begin = time.perf_counter()
    step = 0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward()
            optimizer.step()
            step += 1
            if step == args.steps:
                break
        if step == args.steps:
            break
    seconds = time.perf_counter() - begin

    if rank == 0:
        print(f"{step} steps in {seconds:.1f} s ({1000 * seconds / step:.1f} ms a step), last loss {loss.item():.3f}")
        print(f"accuracy on {HELD_OUT} held-out digits: {accuracy(model.module, held_out):.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
