"""What torch itself calls: the entry points of torch_straggler, apart from the package.

torch runs every `torch.backends` entry point at the end of `import torch`, and an entry point that cannot be imported
makes `import torch` fail for everybody in that environment. So this module imports nothing but `os` and `sys`, costs
well under a millisecond where nothing is asked of it, and turns whatever goes wrong into one line on standard error.

| entry point group | function | called |
| --- | --- | --- |
| `torch.backends` | `autoload` | by every `import torch`, on every torch |
| `torch.distributed.backends` | `register_gloo`, `register_nccl` | by torch 2.14 and later, when a name is asked for |

A request that cannot be met (`STRAGGLER_INTERCEPT`, `STRAGGLER_INJECT`) is not dropped silently: `import torch` goes
on, and the error is raised when the process makes its first group.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def autoload() -> None:
    """Does what the environment asks for. Never raises.

    `STRAGGLER_INTERCEPT` makes the names in it resolve to the wrapper, in children of `mp.spawn` too, since each
    child imports torch. `STRAGGLER_INJECT` installs the delays. With neither, it returns at once; before torch 2.14,
    which reads no `torch.distributed.backends`, it first arranges that our names are registered when asked for.
    """
    try:
        asked = {name: os.environ.get(name) for name in ("STRAGGLER_INTERCEPT", "STRAGGLER_INJECT")}
        if any(asked.values()):
            _start(asked)
        elif _torch_version() < (2, 14):
            _register_when_asked_for()
    except Exception as error:
        _say(error)


def register_gloo() -> None:
    """Registers `straggler_gloo`, for torch, when a group asks for that name.

    Raises:
        ImportError: the library is missing or was built for another torch.
    """
    _register()


def register_nccl() -> None:
    """Registers `straggler_nccl`. See `register_gloo`."""
    _register()


def _register() -> None:
    from torch_straggler.register import register

    register()


def _start(asked: dict[str, str | None]) -> None:
    names, rules = asked["STRAGGLER_INTERCEPT"], asked["STRAGGLER_INJECT"]
    request = f"STRAGGLER_INTERCEPT={names}"
    try:
        if names:
            from torch_straggler.intercept import intercept

            intercept(*names.split(","))
        request = f"STRAGGLER_INJECT={rules}"
        if rules:
            from torch_straggler.inject import install

            install(rules)
    except Exception as error:
        _say(error, request)
        _refuse_groups(f"torch_straggler: {request} cannot be done: {error}", error)
    else:
        if not names and _torch_version() < (2, 14):
            _register_when_asked_for()


def _say(error: Exception, request: str = "autoload") -> None:
    text = f"torch_straggler: {request}: " + (" ".join(str(error).split()) or type(error).__name__)
    import logging  # torch has loaded it

    logger = logging.getLogger("torch_straggler")
    if logger.hasHandlers():
        logger.error(text)
    elif sys.stderr is not None:
        print(text, file=sys.stderr)


def _torch_version() -> tuple[int, int]:
    major, minor = str(sys.modules["torch"].__version__).split(".")[:2]
    return int(major), int(minor)


# ---- Around the one function with which torch makes every group ------------------------------------------------------


def _c10d() -> Any:
    return sys.modules.get("torch.distributed.distributed_c10d")


def _refuse_groups(message: str, cause: Exception) -> None:
    """Makes every attempt of this process to make a group raise `message`."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError(message) from cause

    c10d = _c10d()
    if c10d is not None:
        c10d._new_process_group_helper = refuse


def _register_when_asked_for() -> None:
    """Imports the package when a group asks for one of its names.

    Registering at once would do, but before 2.14 the mere presence of a plugin changes which default backend torch
    chooses for a group such as `cpu:gloo`.
    """
    c10d = _c10d()
    if c10d is None:
        return
    plain = c10d._new_process_group_helper

    def helper(*args: Any, **kwargs: Any) -> Any:
        backend = kwargs.get("backend", args[3] if len(args) > 3 else "")
        if "straggler_" not in str(backend).lower():
            return plain(*args, **kwargs)
        c10d._new_process_group_helper = plain
        try:
            _register()
        except Exception:
            c10d._new_process_group_helper = helper
            raise
        return c10d._new_process_group_helper(*args, **kwargs)

    c10d._new_process_group_helper = helper
