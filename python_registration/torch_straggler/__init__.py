"""Names the slow rank of a distributed PyTorch job.

Importing the package checks that its library was built for the installed torch, registers the backends
`straggler_gloo` and `straggler_nccl`, and does nothing else. A script need not import it: torch finds the names through
entry points, and `straggler run` wraps a script that says `gloo` or `nccl` itself.

The library is loaded when the first group is made.
"""

from torch_straggler import _library

_library.check()

from torch_straggler.intercept import intercept  # noqa: E402
from torch_straggler.mitigation import (  # noqa: E402
    BucketLedger,
    Ledger,
    flush,
    ledger,
    load_state_dict,
    state_dict,
)
from torch_straggler.register import register as _register  # noqa: E402
from torch_straggler.report import JobReport, report  # noqa: E402
from torch_straggler.rescore import Rescored, noise_like, rescore, rescore_synthetic  # noqa: E402

_register()

__all__ = [
    "BucketLedger",
    "JobReport",
    "Ledger",
    "Rescored",
    "__version__",
    "flush",
    "intercept",
    "ledger",
    "load_state_dict",
    "noise_like",
    "report",
    "rescore",
    "rescore_synthetic",
    "state_dict",
]

__version__: str


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("torch_straggler")
    raise AttributeError(f"module 'torch_straggler' has no attribute '{name}'")
