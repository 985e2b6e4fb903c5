"""What torch before 2.14 needs instead of plugins for `gloo` and `nccl`.

There, torch makes these two itself, inside `_new_process_group_helper`, and asserts their classes. So

- their creation is repeated here, as that helper does it (`CREATORS`);
- a name is taken over by translating it in `BackendConfig`, where torch turns a group's backend string into one name a
  device: `gloo` becomes `straggler_gloo`, a plugin, which reaches our creator;
- every plugin has the type CUSTOM and a group keeps one backend per type, so a group can hold one of ours only;
- the default type that torch chooses for `device:name` strings ignores plugins (it compares upper case with lower
  case), so it is set again on the finished group.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

NEEDED = tuple(int(part) for part in str(torch.__version__).split(".")[:2]) < (2, 14)

OWN_NAMES = {"gloo": "straggler_gloo", "nccl": "straggler_nccl"}

_taken: set[str] = set()


# ---- torch's own creation, repeated ----------------------------------------------------------------------------------


def _create_gloo(opts: Any, _backend_options: Any) -> Any:
    if not dist.is_gloo_available():
        raise RuntimeError("Distributed package doesn't have Gloo built in")
    backend: Any = c10d.ProcessGroupGloo(opts.store, opts.group_rank, opts.group_size, timeout=opts.timeout)
    backend.options.global_ranks_in_group = opts.global_ranks_in_group
    backend.options.group_name = opts.group_id
    backend._set_sequence_number_for_group()
    return backend


def _create_nccl(opts: Any, backend_options: Any) -> Any:
    if not dist.is_nccl_available():
        raise RuntimeError("Distributed package doesn't have NCCL built in")
    options: Any = backend_options
    if options is None:
        options = c10d.ProcessGroupNCCL.Options()
        options.is_high_priority_stream = False
    elif not isinstance(options, c10d.ProcessGroupNCCL.Options):
        raise AssertionError("Expected backend_options argument to be of type ProcessGroupNCCL.Options")
    elif options._timeout != opts.timeout:
        warnings.warn(
            "backend_options._timeout was specified, "
            "but timeout kwarg has a default value that will always override it.",
            stacklevel=2,
        )
    options._timeout = opts.timeout
    options.global_ranks_in_group = opts.global_ranks_in_group
    options.group_name = opts.group_id
    backend: Any = c10d.ProcessGroupNCCL(opts.store, opts.group_rank, opts.group_size, options)
    backend._set_sequence_number_for_group()
    return backend


CREATORS: dict[str, Callable[[Any, Any], Any]] = {"gloo": _create_gloo, "nccl": _create_nccl}


# ---- One of ours per group -------------------------------------------------------------------------------------------

_last_store: Callable[[], Any] = lambda: None  # noqa: E731
_last_name = ""


def refuse_two_names(name: str, store: Any) -> None:
    """Called with each backend that is made. The backends of one group share the store below the device's prefix.

    Raises:
        RuntimeError: the group already holds another backend of ours.
    """
    global _last_store, _last_name
    shared = store.underlying_store
    if _last_store() is shared and _last_name != name:
        raise RuntimeError(
            f"{name}: a group with both straggler_gloo and straggler_nccl needs torch 2.14 or later, "
            f"torch {torch.__version__} would send all tensors to one of them. Use one of the two, e.g. "
            "'cpu:gloo,cuda:straggler_nccl'"
        )
    _last_store, _last_name = weakref.ref(shared), name


# ---- Changes to torch's Python ---------------------------------------------------------------------------------------


def install() -> None:
    """Changes how torch makes groups, in the two respects described below. Repeating it is harmless."""
    if getattr(c10d._new_process_group_helper, "sets_default_type", False):
        return
    setattr(c10d, "_new_process_group_helper", _setting_default_type(c10d._new_process_group_helper))  # noqa: B010
    setattr(c10d, "_get_split_source", _never_ours(c10d._get_split_source))  # noqa: B010


def _setting_default_type(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Sets the default backend type of a group that torch left without the right one."""

    @functools.wraps(plain)
    def helper(*args: Any, **kwargs: Any) -> Any:
        group, store = plain(*args, **kwargs)
        if isinstance(group, dist.ProcessGroup):
            default = _default_type(str(kwargs["backend"] if "backend" in kwargs else args[3]))
            if default is not None:
                group._set_default_backend(default)
        return group, store

    helper.sets_default_type = True  # type: ignore[attr-defined]
    return helper


def _never_ours(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps a new group from being split off a wrapped backend.

    A plugin's creator is not told what to split from, so the members would make a new communicator, while the ranks
    outside the group would enter a split that nobody joins.
    """

    @functools.wraps(plain)
    def split_source(*args: Any, **kwargs: Any) -> Any:
        backend = plain(*args, **kwargs)
        return None if hasattr(backend, "inner") else backend

    return split_source


def _default_type(backend: str) -> Any:
    """The default type of a group of `backend`, or None where torch's own choice is right.

    Without plugins torch chooses GLOO for a `device:name` string that has no `nccl` in it; with any plugin, nothing.
    """
    values = set(c10d.BackendConfig(dist.Backend(backend)).device_backend_map.values())
    types = dist.ProcessGroup.BackendType
    if "nccl" in values:
        return None
    if values & set(OWN_NAMES.values()):
        return types.CUSTOM
    others = {name.lower() for name in dist.Backend._plugins} & values
    return types.GLOO if ":" in backend and not others else None


def take_over(name: str) -> None:
    """Makes `name` build our backend. Repeating it is harmless."""
    _translate_names()
    _taken.add(name)
    # What torch declares a group of that bare name to be, before it builds the backend.
    dist.Backend.backend_type_map[name] = dist.ProcessGroup.BackendType.CUSTOM


def _translate_names() -> None:
    plain = c10d.BackendConfig.__init__
    if getattr(plain, "translates_names", False):
        return

    @functools.wraps(plain)
    def init(self: Any, backend: Any) -> None:
        plain(self, backend)
        self.as_asked_for = dict(self.device_backend_map)
        self.device_backend_map = translated(self.device_backend_map)

    def text(self: Any) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.as_asked_for.items())

    init.translates_names = True  # type: ignore[attr-defined]
    setattr(c10d.BackendConfig, "__init__", init)  # noqa: B010
    setattr(c10d.BackendConfig, "__repr__", text)  # noqa: B010


def translated(names: dict[str, str]) -> dict[str, str]:
    """`{device: name}` with the names that were taken over replaced by ours; of two, only `nccl`, the accelerator's.

    `{"cpu": "gloo", "cuda": "nccl"}` becomes `{"cpu": "gloo", "cuda": "straggler_nccl"}`, since ours would be of one
    type, and a group keeps one backend per type.
    """
    found = _taken & set(names.values())
    chosen = {"nccl"} if len(found) > 1 else found
    return {device: OWN_NAMES[name] if name in chosen else name for device, name in names.items()}
