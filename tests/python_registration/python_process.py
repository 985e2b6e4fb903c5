"""What the tests of the Python side import: the type of the process fixtures, and code that such processes share."""

import subprocess
from collections.abc import Callable
from typing import TypeAlias

Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]

# Code for a process that makes groups of one rank: no port is agreed on, none is left behind.
ONE_RANK = """
import torch, torch.distributed as dist
def init(backend=None, **options):
    store = dist.TCPStore("127.0.0.1", 0, 1, is_master=True)
    dist.init_process_group(backend, store=store, rank=0, world_size=1, **options)
def backend_of(group=None, device="cpu"):
    return (group or dist.group.WORLD)._get_backend(torch.device(device))
"""
