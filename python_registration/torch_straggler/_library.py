"""The compiled library `_C`: checked before it is loaded, loaded when it is first needed.

c10d has no stable binary interface, so one build serves one minor version of torch. Loading it into another gives an
undefined symbol or a crash; the check here gives a sentence.
"""

from __future__ import annotations

import torch

REBUILD = "pip install --no-build-isolation --no-deps --force-reinstall ."


def check() -> None:
    """Compares the torch that the library was built for with the one that is installed, without loading anything.

    Raises:
        ImportError: they differ, or the package is not built. The text names both versions and the command to rebuild.
    """
    running = ".".join(str(torch.__version__).split(".")[:2])
    try:
        from torch_straggler._build_info import BUILT_FOR_TORCH
    except ImportError as error:
        raise ImportError(
            "torch_straggler is not built: its compiled library is missing. "
            f"In its source folder: {REBUILD} (torch {torch.__version__} is installed)"
        ) from error
    if running != BUILT_FOR_TORCH:
        raise ImportError(
            f"torch_straggler was built for torch {BUILT_FOR_TORCH}, but torch {torch.__version__} is installed. "
            f"Rebuild it in its source folder: {REBUILD}"
        )
    if not torch.distributed.is_available():
        raise ImportError("torch_straggler needs a torch that is built with torch.distributed")


def load() -> None:
    """Makes `from torch_straggler import _C` safe. Cheap when repeated.

    Raises:
        ImportError: as `check`, or the library is there but does not load.
    """
    check()
    try:
        from torch_straggler import _C  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"torch_straggler's library does not load under torch {torch.__version__}: {error}. "
            f"Rebuild it in its source folder: {REBUILD}"
        ) from error
