"""The backends `straggler_gloo` and `straggler_nccl`: what torch calls when a group asks for one.

The inner backend is built by torch's own creator, from the same options, so that it is what the script would have got;
then it is wrapped. Nothing is kept between two calls, so a creation that failed can simply be repeated.

`straggler_gloo` is of type CUSTOM: DDP takes any backend of type GLOO for torch's own class and reads its members.
`straggler_nccl` is of type NCCL, since a group keeps one backend per type, and `cpu:straggler_gloo,cuda:straggler_nccl`
needs two. Nothing in torch 2.15 casts a backend by the type NCCL: it chooses the device of a barrier by it, and what is
particular to NCCL asks for the Python class. Before 2.14 a plugin's type is always CUSTOM (`older_torch`).
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from multiprocessing.util import Finalize
from typing import Any, NamedTuple, TypeAlias

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.distributed.constants import default_pg_timeout

from torch_straggler import _library, _log, inject, mitigation, older_torch

# (torch's _DistributedBackendOptions, the options object that the script passed or None) to a c10d Backend.
Creator: TypeAlias = Callable[[Any, Any], Any]


class Registration(NamedTuple):
    name: str
    inner: str
    devices: tuple[str, ...]


REGISTRATIONS = (
    Registration("straggler_gloo", "gloo", ("cpu", "cuda")),
    Registration("straggler_nccl", "nccl", ("cuda",)),
)

# torch's own creators of the names that `intercept` took over.
torch_creators: dict[str, Creator] = {}

_finishing_process: int | None = None


# ---- Names -----------------------------------------------------------------------------------------------------------


def register() -> None:
    """Registers both names with torch. Repeating it is harmless. Does not load the library."""
    for registration in REGISTRATIONS:
        register_name(registration.name, registration.inner, list(registration.devices))
    if older_torch.NEEDED:
        older_torch.install()


def register_name(name: str, inner: str, devices: list[str]) -> None:
    """Makes `name` stand for the wrapper around torch's `inner`, and leaves the default backend of every device alone.

    `register_backend` gives a plugin each device that has no default yet; ours never is a default.
    """
    defaults = dict(dist.Backend.default_device_backend_map)
    options: dict[str, Any] = {} if older_torch.NEEDED else {"_backend_type": backend_type(inner)}
    dist.Backend.register_backend(name, creator(name, inner), extended_api=True, devices=devices, **options)
    dist.Backend.default_device_backend_map.clear()
    dist.Backend.default_device_backend_map.update(defaults)


def backend_type(inner: str) -> Any:
    """The type that the wrapper around `inner` has in a group, from torch 2.14 on."""
    types = dist.ProcessGroup.BackendType
    return types.NCCL if inner == "nccl" else types.CUSTOM


# ---- Creation --------------------------------------------------------------------------------------------------------


def creator(name: str, inner: str) -> Creator:
    """The function that torch calls to make a backend of `name`."""

    def create(opts: Any, backend_options: Any) -> Any:
        return _create(name, inner, opts, backend_options)

    return create


def _create(name: str, inner: str, opts: Any, backend_options: Any) -> Any:
    """Builds the inner backend and wraps it.

    Raises:
        ImportError: the library does not fit the installed torch.
        ValueError: a `STRAGGLER_*` setting is unknown or malformed.
        Exception: whatever torch's own creator raises, untouched.
    """
    _library.load()
    from torch_straggler import _C

    _C.check_settings()
    if older_torch.NEEDED:
        older_torch.refuse_two_names(name, opts.store)
    opts.timeout = effective_timeout(name, inner, opts.timeout)
    if getattr(opts, "split_from", None) is not None:
        opts.split_from = unwrap(opts.split_from)
    built = torch_creator(inner)(opts, backend_options)
    _record_as_inner_does(name, inner)

    ranks = list(opts.global_ranks_in_group) or list(range(opts.group_size))
    if mitigation.asked_for():
        built = mitigation.wrap(built, opts, ranks, inner)
    backend: Any = _C.StragglerBackend(built, opts.store, group_id=str(opts.group_id), global_ranks=ranks)
    rules = inject.collective_rules()
    if rules:
        backend = _C.DelayedBackend(backend, rank=ranks[opts.group_rank], rules=rules)
    _finish_at_exit()
    return backend


def torch_creator(inner: str) -> Creator:
    """torch's own creator of `inner`, whether the name was taken over or not."""
    if inner in torch_creators:
        return torch_creators[inner]
    if older_torch.NEEDED:
        return older_torch.CREATORS[inner]
    dist.Backend._ensure_backend_registered(inner)
    return dist.Backend._plugins[inner.upper()].creator_fn


def effective_timeout(name: str, inner: str, timeout: Any) -> Any:
    """The timeout for the inner backend.

    torch's default goes by name: 30 minutes for a plugin, 10 for `nccl`. A creator cannot tell the default from an
    explicit 30 minutes, so exactly the default counts as the inner's own default. Under a name that was taken over,
    torch has already applied the right one.
    """
    if name == inner or timeout != default_pg_timeout:
        return timeout
    return c10d._get_default_timeout(inner)


def unwrap(backend: Any) -> Any:
    """The inner backend of our decorators: torch's creators assert their own class on what they split from."""
    from torch_straggler import _C

    while isinstance(backend, _C.ForwardingBackend):
        backend = backend.inner
    return backend


def _record_as_inner_does(name: str, inner: str) -> None:
    """Keeps torch from hooking its Flight Recorder to a group whose inner backend feeds it already."""
    recording = getattr(c10d, "_FR_SELF_RECORDING_BACKENDS", None)
    if recording is not None and inner in recording:
        recording.add(name)


def _finish_at_exit() -> None:
    """A script that ends without `destroy_process_group` still gets its report.

    multiprocessing's finalizers run at the exit of the interpreter and, unlike `atexit`, at the end of a forked child
    too; one that a child inherits from its parent does not run in it.
    """
    global _finishing_process
    if _finishing_process == os.getpid():
        return
    from torch_straggler import _C

    def finish() -> None:
        _C.finish()
        _log.leave_stuck_handlers()

    Finalize(None, finish, exitpriority=0)
    atexit.register(_log.leave_stuck_handlers)  # `logging` may have its turn before multiprocessing has
    _finishing_process = os.getpid()
