"""The command line of `straggler bench`.

Exit status: 0 measured; 1 the ranks failed, or results differ from the bare backend's; 2 what was asked for cannot be
measured, said in one sentence before any process is started.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from . import document, figure, parsing, table
from .collective_kinds import COLLECTIVES
from .errors import InputError, JobError
from .patterns import PATTERNS
from .plan import WRAPPED, Plan, families
from .rows import Row, rows

BACKENDS = tuple(name for pair in WRAPPED.items() for name in pair)
FORBIDDEN = ("STRAGGLER_INTERCEPT", "STRAGGLER_INJECT")  # the bare backend would be wrapped, or ranks late by more
DEFAULTS = {"bytes": "4K,1M", "skews": "0,1,2,4", "repeats": "10"}
QUICK = {"bytes": "64K", "skews": "0,2", "repeats": "4"}
MOST_RANKS = 64


def main(arguments: list[str]) -> int:
    """Runs the bench. Returns the exit status."""
    try:
        options = _parser().parse_args(arguments)
        plan = _plan(options)
        _check_surroundings(options, plan)
    except InputError as error:
        print(f"straggler bench: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"straggler bench: {error}", file=sys.stderr)
        return 1
    try:
        return _measure(options, plan, arguments)
    except JobError as error:
        print(f"straggler bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("straggler bench: interrupted, and the ranks were ended", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (straggler bench --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="straggler bench",
        description="What an arrival skew does to collectives, on the bare backend and on the wrapped one. Starts the "
        "ranks itself, on this host. The defaults take about a minute on two cores.",
    )
    parser.add_argument("--ranks", default="4", metavar="N", help=f"processes, 2 to {MOST_RANKS} (4)")
    parser.add_argument("--bytes", metavar="LIST", help=f"sizes, suffixes K, M, G ({DEFAULTS['bytes']})")
    parser.add_argument("--collectives", default="all", metavar="LIST", help=f"out of {', '.join(COLLECTIVES)} (all)")
    parser.add_argument("--patterns", default="all", metavar="LIST", help=f"out of {', '.join(PATTERNS)} (all)")
    parser.add_argument("--skews", metavar="LIST", help=f"arrival skews, in transfer times ({DEFAULTS['skews']})")
    parser.add_argument(
        "--repeats", metavar="N", help=f"measurements of each backend a row, an even number ({DEFAULTS['repeats']})"
    )
    parser.add_argument(
        "--backends",
        metavar="LIST",
        help=f"out of {', '.join(BACKENDS)}; a wrapped one brings its bare one (gloo's, and nccl's with enough GPUs)",
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the document of the run")
    parser.add_argument("--figure", type=Path, metavar="PATH", help="draw it: .png, .svg or .pdf; needs matplotlib")
    parser.add_argument(
        "--time-limit", default="600", metavar="S", help="seconds after which the ranks are ended (600)"
    )
    parser.add_argument("--quick", action="store_true", help="a short look: one size, one arrival skew, few repeats")
    return parser


def _plan(options: argparse.Namespace) -> Plan:
    short = QUICK if options.quick else DEFAULTS
    given = {name: getattr(options, name) or short[name] for name in DEFAULTS}
    ranks = parsing.whole("--ranks", options.ranks, 2, MOST_RANKS)
    repeats = parsing.whole("--repeats", given["repeats"], 2, 10_000)
    plan = Plan(
        ranks=ranks,
        families=families(_backends(options.backends, ranks)),
        collectives=_names("--collectives", options.collectives, tuple(COLLECTIVES)),
        sizes=parsing.sizes(given["bytes"]),
        patterns=_names("--patterns", options.patterns, tuple(PATTERNS)),
        skews=parsing.skews(given["skews"]),
        rounds=(repeats + 1) // 2,
        time_limit_s=parsing.whole("--time-limit", options.time_limit, 1, 86_400),
    )
    if not plan.shapes():
        raise InputError("nothing is left to measure: an arrival skew of 0 belongs to the pattern 'none' alone")
    return plan


def _names(option: str, text: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    return allowed if text == "all" else parsing.names(option, text, allowed)


def _backends(text: str | None, ranks: int) -> tuple[str, ...]:
    if text is not None:
        return parsing.names("--backends", text, BACKENDS)
    from . import job

    return BACKENDS if job.gpus() >= ranks else tuple(name for name in BACKENDS if "gloo" in name)


def _check_surroundings(options: argparse.Namespace, plan: Plan) -> None:
    for name in FORBIDDEN:
        if os.environ.get(name):
            raise InputError(f"{name} is set, so what is measured as bare would not be; unset it")
    if options.figure is not None:
        figure.check(options.figure)
    for option, path in (("--json", options.json), ("--figure", options.figure)):
        if path is not None:
            _check_writable(option, path)
    from . import job

    job.check_devices(plan)
    if any(family.wrapped for family in plan.families):
        _check_settings()


def _check_writable(option: str, path: Path) -> None:
    try:
        if path.exists():
            path.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise InputError(f"{option} {str(path)!r} cannot be written: {error.strerror}") from error


def _check_settings() -> None:
    """The settings of the wrapped backend, which would otherwise fail in every rank."""
    from torch_straggler import _library

    _library.load()
    from torch_straggler import _C

    try:
        _C.check_settings()
    except ValueError as error:
        raise InputError(str(error)) from error


def _measure(options: argparse.Namespace, plan: Plan, arguments: list[str]) -> int:
    import torch

    from . import job

    load_before, begin = os.getloadavg()[0], time.monotonic()
    found: list[Row] = []
    shapes = len(plan.shapes())
    with closing(job.run(plan)) as cells:
        for number, measured in enumerate(cells):
            found += rows(measured, plan.ranks)
            if number % shapes == 0:
                _say_progress(plan, number // shapes, measured.transfer_ns / 1e6, time.monotonic() - begin)
    seconds = time.monotonic() - begin
    table.show(found, Console())
    if options.json is not None:
        options.json.write_text(
            document.text(
                document.build(
                    plan,
                    found,
                    document.machine(job.gpus(), load_before),
                    document.versions(torch.__version__, job.nccl_version()),
                    shlex.join(["straggler", "bench", *arguments]),
                    seconds,
                )
            )
        )
    if options.figure is not None:
        figure.draw(found, options.figure)
    return 0 if all(row.bitwise_equal for row in found) else 1


def _say_progress(plan: Plan, block: int, transfer_ms: float, seconds: float) -> None:
    family, collective, size = plan.blocks()[block]
    print(
        f"[{block + 1}/{len(plan.blocks())}, {seconds:.0f} s] {family.bare} {collective} {table.size_text(size)}: "
        f"transfer time {transfer_ms:.2f} ms",
        file=sys.stderr,
        flush=True,
    )
