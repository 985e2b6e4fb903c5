"""Mitigation, as a script sees it: the ledger, and what a script may tell of itself.

c10d does not see all that decides whether a late rank's slot may be filled. What it does not, is taken from torch's
Python, once a group with mitigation is made:

- `DistributedDataParallel` tells how many elements of gradients it reduces: only these are ever filled. A model with a
  comm hook, or with `SyncBatchNorm`, is left exact, and so is one in a `Join` context.
- `GradScaler.scale` tells the scale of the gradients to come. A class that overrides it or `update` is left exact.

Without mitigation none of this is installed.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from torch_straggler import inject, participation
from torch_straggler._log import emit

STATE_VERSION = 1

_installed = False


@dataclass(frozen=True)
class BucketLedger:
    """What became of the gradients of one bucket on this rank: `produced` is the sum of the four after it, always.

    Attributes:
        bucket: number of the bucket, equal on all ranks.
        elements: its length.
        produced: gradients that backwards have brought.
        on_time: that went with the rank's own contribution.
        late: that went with a later contribution.
        dropped: that were discarded: in mode `drop`, or since they were not finite.
        pending: that the rank still owes.
        staleness_sum, staleness_max: steps by which those that were late were late, in all and at most.
    """

    bucket: int
    elements: int
    produced: int
    on_time: int
    late: int
    dropped: int
    pending: int
    staleness_sum: int
    staleness_max: int


@dataclass(frozen=True)
class Ledger:
    """What mitigation did on this rank so far.

    Attributes:
        mode: `carry` or `drop`.
        rank: global rank.
        world_size: ranks of the group.
        armed: whether slots may be filled now.
        reason: why not; None if they may.
        text: for what it is armed, else the reason.
        buckets: one row a bucket, by number.
        filled_by_proxy: slots of any kind that were filled for this rank.
        waited_for: slots in which this rank waited for longer than the grace, and that were left to the late rank.
        messages: control messages that this rank has sent.
        saved_ms: what the others would have waited for this rank, and did not, milliseconds.
        grace_ms: how long a late rank is waited for, milliseconds; None until enough was measured.
    """

    mode: str
    rank: int
    world_size: int
    armed: bool
    reason: str | None
    text: str
    buckets: tuple[BucketLedger, ...]
    filled_by_proxy: int
    waited_for: int
    messages: int
    saved_ms: float
    grace_ms: float | None


# ---- What a script calls ---------------------------------------------------------------------------------------------


def ledger() -> Ledger | None:
    """This rank's ledger; None if no group of this process has mitigation."""
    backend = _current()
    if backend is None:
        return None
    status = backend.status()
    return Ledger(
        mode=status["mode"],
        rank=status["rank"],
        world_size=backend.size(),
        armed=status["armed"],
        reason=None if status["armed"] else status["text"],
        text=status["text"],
        buckets=tuple(BucketLedger(**row) for row in status["buckets"]),
        filled_by_proxy=status["filled_by_proxy"],
        waited_for=status["waited_for"],
        messages=status["messages"],
        saved_ms=status["saved_ms"],
        grace_ms=status["grace_ms"],
    )


def flush() -> None:
    """Has the next backward be exact, so that all that is owed goes with it. Without mitigation it does nothing.

    To be called by every rank at the same place of the program, before a backward: the last one, or one before an
    evaluation or a checkpoint. A rank that is late is waited for in it.
    """
    backend = _current()
    if backend is not None:
        backend.flush()


def state_dict() -> dict[str, Any]:
    """What this rank owes, to be kept with a checkpoint: each rank has its own.

    Returns:
        `version`, `mode`, `rank`, `world_size`, and `residuals`: of each bucket, by number, a tensor of one dimension,
        of type float32 at least, in units of the gradient without a GradScaler's scale. It is what is owed at the step
        in which the caller is, also where others are ahead. Without mitigation there are no residuals.
    """
    backend = _current()
    if backend is None:
        initialized = dist.is_initialized()
        rank, world = (dist.get_rank(), dist.get_world_size()) if initialized else (0, 1)
        return {"version": STATE_VERSION, "mode": "off", "rank": rank, "world_size": world, "residuals": {}}
    status = backend.status()
    return {
        "version": STATE_VERSION,
        "mode": status["mode"],
        "rank": status["rank"],
        "world_size": backend.size(),
        "residuals": dict(backend.residuals()),
    }


def load_state_dict(state: Mapping[str, Any]) -> None:
    """Takes over what this rank owed, from `state_dict()`; to be called after the group is made, before training.

    Raises:
        ValueError: it is of another rank, number of ranks or mode, or no such state; or it holds residuals and no group
            of this process has mitigation.
    """
    backend = _current()
    mine = state_dict()
    for name in ("version", "rank", "world_size"):
        if state.get(name) != mine[name]:
            raise ValueError(f"load_state_dict: its {name} is {state.get(name)!r}; allowed: {mine[name]!r}")
    modes = {state.get("mode"), mine["mode"]}
    if not modes <= {"off", "carry"} and not modes <= {"off", "drop"}:
        raise ValueError(f"load_state_dict: its mode is {state.get('mode')!r}; allowed: {mine['mode']!r}")
    residuals = state.get("residuals")
    if not isinstance(residuals, Mapping) or not all(_is_residual(*item) for item in residuals.items()):
        raise ValueError("load_state_dict: its residuals are no mapping of bucket numbers to tensors of one dimension")
    if not residuals:
        return
    if backend is None or state.get("mode") != "carry" or mine["mode"] != "carry":
        raise ValueError(
            f"load_state_dict: it holds gradients that are owed, of mode {state.get('mode')!r}, and the mode here is "
            f"{mine['mode']!r}; allowed: STRAGGLER_MITIGATE=carry on both sides"
        )
    for bucket, owed in residuals.items():
        backend.restore(bucket, owed)


def _is_residual(bucket: Any, owed: Any) -> bool:
    return (
        isinstance(bucket, int)
        and isinstance(owed, torch.Tensor)
        and owed.dim() == 1
        and owed.dtype in (torch.float32, torch.float64)
        and bool(torch.isfinite(owed).all())
    )


def _current() -> Any:
    library = sys.modules.get("torch_straggler._C")  # without it there is no group of ours
    return None if library is None else library.current_mitigation()


# ---- Making it -------------------------------------------------------------------------------------------------------


def asked_for() -> bool:
    """Whether `STRAGGLER_MITIGATE` asks for it. What it says is checked with all other settings."""
    return os.environ.get("STRAGGLER_MITIGATE", "off") != "off"


def wrap(inner: Any, opts: Any, ranks: list[int], name: str) -> Any:
    """The backend that mitigates around `inner`, or one that only tells it of other groups' operations.

    Raises:
        ValueError: a setting does not fit the group.
    """
    from torch_straggler import _C

    if dist.is_initialized():
        return _C.SubgroupBackend(inner, name=str(opts.group_id))
    mode = os.environ["STRAGGLER_MITIGATE"]
    rank = ranks[opts.group_rank]
    script = None
    if path := os.environ.get(participation.SETTING):
        script = participation.read(path, rank, len(ranks), mode)
    if name != "gloo":
        _say_not_on(name, rank)
        return inner
    made = _C.make_mitigation(
        inner,
        opts.store,
        global_rank=rank,
        timeout=opts.timeout,
        fills=None if script is None else script.fills,
        participants=None if script is None else script.participants,
        faults=inject.control_faults(),
    )
    if made is None:
        return inner
    install()
    return made


def _say_not_on(name: str, rank: int) -> None:
    if rank == 0:
        emit(
            logging.WARNING,
            f"straggler: mitigation {os.environ['STRAGGLER_MITIGATE']} is off: it is for Gloo, not {name}",
        )


# ---- What c10d does not see ------------------------------------------------------------------------------------------


def install() -> None:
    """Has torch's Python tell what it knows, in this process, once. No result of it changes."""
    global _installed
    if _installed:
        return
    _installed = True
    from torch.distributed.algorithms.join import Join
    from torch.nn.parallel import DistributedDataParallel

    _after(DistributedDataParallel, "__init__", _model_is_wrapped)
    for method in ("register_comm_hook", "_register_builtin_comm_hook"):
        _after(DistributedDataParallel, method, lambda model, *_: _leave_exact(model, "a model has a comm hook"))
    _after(Join, "__enter__", lambda *_: _stand_down("the script uses Join, in which ranks take part that have ended"))
    _after(torch.amp.GradScaler, "__init__", _scaler_is_made)
    _after(torch.amp.GradScaler, "scale", lambda scaler, *_: _tell_scale(scaler))


def _after(owner: type, method: str, tell: Callable[..., None]) -> None:
    plain = getattr(owner, method)

    @functools.wraps(plain)
    def told(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = plain(self, *args, **kwargs)
        tell(self, *args)
        return result

    setattr(owner, method, told)


def _model_is_wrapped(model: Any, *_: Any) -> None:
    backend = _current()
    if backend is None or model.process_group is not dist.group.WORLD:
        return
    if any(isinstance(module, torch.nn.SyncBatchNorm) for module in model.modules()):
        _stand_down("a model has SyncBatchNorm, whose statistics need every rank")
        return
    elements = sum(parameter.numel() for parameter in model._module_parameters if parameter.requires_grad)
    backend.expect_gradients(elements)
    weakref.finalize(model, _model_is_gone, elements).atexit = False


def _model_is_gone(elements: int) -> None:
    backend = _current()
    if backend is not None:
        backend.expect_gradients(-elements)


def _leave_exact(model: Any, reason: str) -> None:
    if model.process_group is dist.group.WORLD:
        _stand_down(reason)


def _stand_down(reason: str) -> None:
    backend = _current()
    if backend is not None:
        backend.stand_down(reason)


def _scaler_is_made(scaler: Any, *_: Any) -> None:
    plain = torch.amp.GradScaler
    if any(getattr(type(scaler), method) is not getattr(plain, method) for method in ("scale", "update")):
        _stand_down(f"{type(scaler).__name__} scales gradients in a way of its own")


def _tell_scale(scaler: Any) -> None:
    backend = _current()
    if backend is not None and scaler.is_enabled():
        backend.set_gradient_scale(scaler.get_scale())
