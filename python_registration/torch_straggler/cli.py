"""The command `straggler`.

| command | does |
| --- | --- |
| `straggler run [torchrun options] [--inject RULE] script.py …` | torchrun, with every gloo and nccl group observed |
| `straggler report PATH [--json]` | the report of the last job in a folder of records |
| `straggler rescore PATH [--relative-gate 0.02] …` | its verdicts under other options, or of synthetic windows |
| `straggler settings` | the settings, their values here, and what is allowed |
| `straggler bench …` | the skew benchmark |

Exit status: 0 done; 1 it could not be done (nothing to report from or to compare, a setting that is not valid, a
library that does not fit the installed torch), with one line that says why; 2 a command line that is not understood.
`run` otherwise ends as torchrun does.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from torch_straggler import _library


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # These have parsers of their own: two have arguments that are not ours to interpret, the third's are the library's.
    passed_on: dict[str, Callable[[list[str]], int]] = {"run": _run, "bench": _bench, "rescore": _rescore}
    if given and given[0] in passed_on:
        return passed_on[given[0]](given[1:])
    options = _parser().parse_args(given)
    try:
        status: int = options.command(options)
    except (ImportError, ValueError) as error:
        return _fail(options.name, str(error))
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="straggler", description="Names the slow rank of a distributed PyTorch job.")
    commands = parser.add_subparsers(dest="name", required=True, metavar="command")
    commands.add_parser("run", help="torchrun, with every gloo and nccl group observed (straggler run --help)")
    report = commands.add_parser("report", help="the report of a job from its records")
    report.add_argument("path", type=Path, help="the folder that STRAGGLER_DIR named, or a job.jsonl in it")
    report.add_argument("--json", action="store_true", help="print the report record, one line, and no table")
    report.set_defaults(command=_report)
    commands.add_parser("rescore", help="a job's verdicts under other options (straggler rescore --help)")
    settings = commands.add_parser("settings", help="the settings, their values here, and what is allowed")
    settings.set_defaults(command=_settings)
    commands.add_parser("bench", help="the skew benchmark (straggler bench --help)")
    return parser


def _fail(command: str, text: str) -> int:
    print(f"straggler {command}: {text}", file=sys.stderr)
    return 1


def _run(arguments: list[str]) -> int:
    from torch_straggler import launch

    return launch.main(arguments)


def _rescore(arguments: list[str]) -> int:
    from torch_straggler.rescore import main

    try:
        return main(arguments)
    except ImportError as error:
        return _fail("rescore", str(error))


def _bench(arguments: list[str]) -> int:
    try:
        bench = importlib.import_module("torch_straggler.bench")
    except ModuleNotFoundError as error:
        if error.name != "torch_straggler.bench":
            raise
        return _fail("bench", "the benchmark is not part of this installation")
    status: int = bench.main(arguments)
    return status


def _report(options: argparse.Namespace) -> int:
    _library.load()
    from torch_straggler import replay

    try:
        recording = replay.read(options.path)
    except replay.NoReportError as error:
        return _fail("report", str(error))
    last = recording.sessions[-1]
    print(last.replay.report_json() if options.json else last.replay.text().rstrip("\n"))
    for warning in recording.warnings():
        print(f"straggler report: {warning}", file=sys.stderr)
    if not last.compared():
        return _fail("report", "nothing could be compared: no step and no operation is known of every rank")
    return 0


def _settings(_options: argparse.Namespace) -> int:
    _library.load()
    from torch_straggler import _C
    from torch_straggler.settings_table import show

    show(_C.settings())
    _C.check_settings()
    return 0
