"""`straggler run`: torchrun, with the names `gloo` and `nccl` taken over in the processes that it starts.

It sets two environment variables and calls torchrun's own `run` with torchrun's own arguments, no more: exit codes,
restarts, logs and signals are torchrun's. What is wrong with our part is said before any process is started.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from torch_straggler import _library
from torch_straggler.injection_rule import RuleError, parse

INJECT_HELP = (
    "Delay a rank, for trials: 'rank=2,where=backward,ms=8'. rank: a number, random, all. where: input, forward, "
    "backward, collective, control. Optional: probability, rotate, every, from (8), to, spin, seed. May be repeated."
)


def main(arguments: Sequence[str]) -> int:
    """Runs a job. Returns 1 if it cannot be started for a reason of ours; torchrun's errors are raised as by torchrun.

    Raises:
        SystemExit: a usage error (2), as torchrun.
        ChildFailedError: a process of the job failed.
    """
    from torch.distributed.elastic.multiprocessing.errors import record
    from torch.distributed.run import run

    parser = argument_parser()
    options = parser.parse_args(arguments)
    if options.inject:
        rules = ";".join(options.inject)
        try:
            parse(rules)
        except RuleError as error:
            parser.error(f"--inject {error}")
        os.environ["STRAGGLER_INJECT"] = rules
    os.environ.setdefault("STRAGGLER_INTERCEPT", "gloo,nccl")
    try:
        check()
    except (ImportError, ValueError, RuntimeError) as error:
        print(f"straggler run: {error}", file=sys.stderr)
        return 1
    record(run)(options)
    return 0


def argument_parser() -> argparse.ArgumentParser:
    """torchrun's parser and `--inject`."""
    from torch.distributed.run import get_args_parser

    parser = get_args_parser()
    parser.prog = "straggler run"
    parser.description = "torchrun, with every gloo and nccl group of the job observed. Its options, and --inject."
    parser.add_argument("--inject", action="append", default=[], metavar="RULE", help=INJECT_HELP)
    return parser


def check() -> None:
    """Refuses what would fail, or silently do nothing, in every process of the job.

    Raises:
        ImportError: the library does not fit the installed torch.
        ValueError: a `STRAGGLER_*` setting is unknown or malformed.
        RuntimeError: torch is told not to call our entry point.
    """
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        raise RuntimeError(
            "TORCH_DEVICE_BACKEND_AUTOLOAD is not 1, so torch would not load torch_straggler in the processes of the "
            "job; unset it"
        )
    _library.load()
    from torch_straggler import _C

    _C.check_settings()
