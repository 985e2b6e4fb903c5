"""What is compared: how each scheme wraps a model and an optimizer. Runs in a rank's process.

`plain` is DDP on gloo, and `control` is the same once more. `carry` and `drop` are DDP on straggler_gloo, with no other
change of the script. The peers have their own documentation's settings; where it says nothing that fits ranks that are
machines of their own, that is chosen here, and said.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LEARNING_RATE, MOMENTUM = 0.05, 0.9
PERIOD = 4  # steps between two averages: the one in the documentation of both averagers
TIMEOUT = timedelta(seconds=300)

SETTINGS = {
    "plain": "DDP on gloo",
    "control": "DDP on gloo, once more",
    "carry": "DDP on straggler_gloo, STRAGGLER_MITIGATE=carry",
    "drop": "DDP on straggler_gloo, STRAGGLER_MITIGATE=drop",
    "post_local": f"PostLocalSGDOptimizer, PeriodicModelAverager(period={PERIOD}), its hook from the end of the "
    "warm-up on, post_local_gradient_allreduce=False: each rank stands for a machine",
    "hierarchical": f"HierarchicalModelAverager, half of the ranks every {PERIOD} steps and all every {4 * PERIOD}: "
    "its documentation's example at half its size; the same hook",
    "torchft": "DistributedDataParallel and Optimizer of torchft, a replica group a rank, ProcessGroupGloo with a "
    "timeout of 30 s, lighthouse with its defaults and min_replicas = all ranks, init_sync=False: weights begin alike",
}


def environment(scheme: str, staleness: int) -> dict[str, str]:
    """What a rank's environment gets."""
    return {"STRAGGLER_MITIGATE": scheme, "STRAGGLER_STALENESS": str(staleness)} if is_mitigated(scheme) else {}


def is_mitigated(scheme: str) -> bool:
    return scheme in ("carry", "drop")


@dataclass(frozen=True)
class Training:
    """A model and an optimizer that a loop can be written for without knowing the scheme."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    zero: Callable[[], None]
    step: Callable[[], None]
    close: Callable[[], None]


def make(scheme: str, module: nn.Module, rank: int, ranks: int, warm_up: int, store: dist.Store) -> Training:
    """Meets the other ranks."""
    optimizer = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    if scheme == "torchft":
        return _torchft(module, optimizer, rank)
    backend = "straggler_gloo" if is_mitigated(scheme) else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, timeout=TIMEOUT)
    model = DistributedDataParallel(module)
    step: Callable[[], Any] = optimizer.step
    if scheme in ("post_local", "hierarchical"):
        step = _averaged(scheme, model, optimizer, ranks, warm_up)
    return Training(model, optimizer, optimizer.zero_grad, step, dist.destroy_process_group)


# ---- Peers -----------------------------------------------------------------------------------------------------------


def _averaged(
    scheme: str, model: DistributedDataParallel, optimizer: torch.optim.Optimizer, ranks: int, warm_up: int
) -> Callable[[], None]:
    from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer

    state = PostLocalSGDState(None, dist.group.WORLD, warm_up, post_local_gradient_allreduce=False)
    model.register_comm_hook(state, post_localSGD_hook)
    if scheme == "post_local":
        return PostLocalSGDOptimizer(optimizer, PeriodicModelAverager(PERIOD, warm_up)).step
    averager = HierarchicalModelAverager(OrderedDict({PERIOD: ranks // 2, 4 * PERIOD: ranks}), warm_up)

    def step() -> None:
        optimizer.step()
        averager.average_parameters(model.parameters())

    return step


def _torchft(module: nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> Training:
    import torchft

    own = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=timedelta(seconds=30)),
        load_state_dict=module.load_state_dict,
        state_dict=module.state_dict,
        min_replica_size=1,
        timeout=timedelta(seconds=30),
        rank=0,
        world_size=1,
        store_addr="127.0.0.1",
        store_port=own.port,
        lighthouse_addr=os.environ["TORCHFT_LIGHTHOUSE"],
        replica_id=f"replica_{rank}",
        hostname="127.0.0.1",
        init_sync=False,
    )
    wrapped = torchft.Optimizer(manager, optimizer)

    def close(store: dist.Store = own) -> None:  # the store lives as long as the manager
        manager.shutdown(wait=False)

    model = torchft.DistributedDataParallel(manager, module)
    return Training(model, optimizer, wrapped.zero_grad, wrapped.step, close)
