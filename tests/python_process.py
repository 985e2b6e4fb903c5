"""What the tests of Python import: the type of the process fixtures, and what such processes share."""

import os
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


def environment(**settings: str) -> dict[str, str]:
    """The environment of a process under test: pytest's own, without what would steer torch or us, and `settings`."""
    own = ("STRAGGLER_", "TORCH_DEVICE_BACKEND_AUTOLOAD", "RANK", "WORLD_SIZE", "MASTER_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return {**kept, "OMP_NUM_THREADS": "1", **settings}
