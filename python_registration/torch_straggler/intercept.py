"""Taking over the names `gloo` and `nccl`, for scripts that say them.

The name stays what it is for the script (`get_backend()` answers `gloo`); what it builds is the wrapper around what
torch would have built. Groups that exist already are not touched.
"""

from __future__ import annotations

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from torch_straggler import older_torch, register

ALLOWED = ("gloo", "nccl")


def intercept(*names: str) -> None:
    """Makes each of `names` ("gloo", "nccl") resolve to the wrapped backend, in this process, from now on.

    Repeating it is harmless. Children do not inherit it unless they are forked: set `STRAGGLER_INTERCEPT` for those.

    Raises:
        ValueError: no name, or one that is not allowed.
        RuntimeError: torchcomms builds the groups, so no name reaches a creator.
    """
    for name in names or ("",):
        if name not in ALLOWED:
            raise ValueError(f"intercept: '{name}' cannot be taken over; allowed: {', '.join(ALLOWED)}")
    if c10d._use_torchcomms_enabled():
        raise RuntimeError("intercept: torchcomms is on and builds the groups itself; unset its option to be observed")
    for name in dict.fromkeys(names):
        _take_over(name)


def _take_over(name: str) -> None:
    if older_torch.NEEDED:
        older_torch.take_over(name)
        return
    dist.Backend._ensure_backend_registered(name)
    current = dist.Backend._plugins[name.upper()].creator_fn
    if getattr(current, "takes_over", None) == name:
        return
    register.torch_creators[name] = current
    register.register_name(name, name, dist.Backend.backend_capability[name])
    dist.Backend._plugins[name.upper()].creator_fn.takes_over = name  # type: ignore[attr-defined]
