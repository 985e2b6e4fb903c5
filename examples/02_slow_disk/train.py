"""Trains a small network on images that each rank reads from its own disk, with DistributedDataParallel.

An ordinary script: torchrun starts it on several ranks. DATA/rank0, DATA/rank1, … each hold a file `images`: records of
one byte, the label, and an image. Every image is used once.

    torchrun --nproc-per-node=3 examples/02_slow_disk/train.py DATA
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

SHAPE = (3, 96, 96)
RECORD_BYTES = 1 + 3 * 96 * 96
CLASSES = 4


class Images(IterableDataset):
    """The records of a file, in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        with open(self.path, "rb", buffering=RECORD_BYTES) as file:
            while len(record := file.read(RECORD_BYTES)) == RECORD_BYTES:
                image = torch.frombuffer(bytearray(record), dtype=torch.uint8, offset=1)
                yield image.view(SHAPE).float() / 255, record[0]


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, kernel_size=8, stride=4),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 16, CLASSES),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--batch-size", type=int, default=64, help="per rank")
    parser.add_argument("--workers", type=int, default=0, help="processes that read; at most one, since order matters")
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()

    images = Images(args.data / f"rank{rank}" / "images")
    loader = DataLoader(images, batch_size=args.batch_size, num_workers=min(args.workers, 1), drop_last=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(network())
    loss_of = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    begin = time.perf_counter()
    steps = 0
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = loss_of(model(batch), labels)
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - begin

    if rank == 0:
        print(f"{steps} steps in {seconds:.1f} s ({1000 * seconds / steps:.1f} ms a step), last loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
