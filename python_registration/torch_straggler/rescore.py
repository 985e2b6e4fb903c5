"""`straggler rescore`: recorded or synthetic windows through the detector again, under other options.

| question | command |
| --- | --- |
| would a lower gate have named somebody? | `straggler rescore records --relative-gate 0.02` |
| would longer windows? | `straggler rescore records --window 50` |
| is 2 ms seen among 8,192 ranks? | `straggler rescore --synthetic ranks=8192,delay=D1,ms=2` |
| the same, with the noise of a recorded run | `straggler rescore --synthetic ranks=8192,delay=D1,ms=2 --like records` |

Without options it tells what the job told. The options are the detector's (`backend/detect/option_table.cc`), those of
synthetic windows are declared in `backend/detect/synthetic_run.cc`; `straggler rescore --help` shows both.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch_straggler import _library
from torch_straggler.report import Verdict, read_verdict


@dataclass(frozen=True)
class Rescored:
    """What the detector says of a job's windows.

    Attributes:
        source: the file that was read, or the whole description of the synthetic windows.
        options: (name, value) of every option of the detector, as text.
        ranks: ranks of the job.
        window: steps a window, as judged.
        verdicts: those that started, changed or cleared, oldest first; `step` says when.
        verdict: the one in force after the last window.
        texts: the same as people read them: one text for each of `verdicts`, then that of `verdict`.
        windows: windows of steps that were judged.
        windows_incomplete: of them, those of which not every rank told.
        windows_abstained: of them, those after which nothing could be said; the first two always are.
        windows_late: windows of a rank that came in after theirs had been judged.
        windows_left_out: windows of a rank that lack a step, and so could not be made of the recorded ones.
        warnings: what is to be known of the file, a sentence each.
    """

    source: str
    options: tuple[tuple[str, str], ...]
    ranks: int
    window: int
    verdicts: tuple[Verdict, ...]
    verdict: Verdict
    texts: tuple[str, ...]
    windows: int
    windows_incomplete: int
    windows_abstained: int
    windows_late: int
    windows_left_out: int
    warnings: tuple[str, ...] = ()


def rescore(path: str | Path, *, window: int | None = None, **options: str | float) -> Rescored:
    """Feeds the last session of a folder of records, or of a file of them, through the detector again.

    Args:
        path: the folder that `STRAGGLER_DIR` named, or a `job.jsonl` in it.
        window: steps a window; None: as recorded.
        options: of the detector, by name: `relative_gate=0.02`. What is not given is as in the job.

    Raises:
        ValueError: an option that is not known, or a value that is not allowed; the text says what is.
        NoReportError (of `torch_straggler.replay`): there are no records, or none of their windows can be judged.
    """
    _library.load()
    from torch_straggler import _C, replay

    texts = _texts(options)
    _C.Rescoring(
        {"ranks": [0], "window": 1}, texts, window
    )  # what is wrong with them is wrong with no line of the file
    recording = replay.read(Path(path), lambda session: _C.Rescoring(session, texts, window))
    return _rescored(str(path), recording.sessions[-1].replay, tuple(recording.warnings()))


def rescore_synthetic(
    description: str, *, like: str | Path | None = None, window: int | None = None, **options: str | float
) -> Rescored:
    """Feeds synthetic windows through the detector.

    Args:
        description: `ranks=8192,windows=50,delay=D1,ms=2`: names and values as `straggler rescore --help` shows them.
        like: records of a run; what `description` does not say is as there: ranks, windows, base, noise.
        window, options: as of `rescore`.

    Raises:
        ValueError, NoReportError: as `rescore`.
    """
    _library.load()
    from torch_straggler import _C

    whole = description if like is None else ",".join(filter(None, (noise_like(like), description)))
    spec = _C.synthetic_spec(whole)
    return _rescored(spec, _C.Rescoring.synthetic(spec, _texts(options), window), ())


def noise_like(path: str | Path) -> str:
    """The description of synthetic windows with the noise of a recorded run, best of one without a straggler.

    Raises:
        NoReportError: there are no records, or fewer than ten windows of which every rank told.
    """
    _library.load()
    from torch_straggler import _C, replay

    recording = replay.read(Path(path), _C.NoiseFit)
    text: str | None = recording.sessions[-1].replay.like()
    if text is None:
        raise replay.NoReportError(f"{path} holds too few windows to tell its noise: ten are needed, of all ranks")
    return text


def _texts(options: dict[str, str | float]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}


def _rescored(source: str, rescoring: Any, warnings: tuple[str, ...]) -> Rescored:
    from torch_straggler.replay import NoReportError

    rescoring.finish()
    verdict = read_verdict(rescoring.verdict())
    counts = rescoring.counts()
    if not counts["windows"]:
        raise NoReportError(f"no window of {source} can be judged: {verdict.reason}")
    return Rescored(
        source=source,
        options=tuple(rescoring.options().items()),
        verdicts=tuple(read_verdict(line) for line in rescoring.events()),
        verdict=verdict,
        texts=tuple(text.rstrip("\n") for text in rescoring.texts()),
        warnings=warnings,
        **counts,
    )


# ---- The command -----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """`straggler rescore`. Returns the exit status."""
    _library.load()
    from torch_straggler import _C
    from torch_straggler.replay import NoReportError

    parser = _parser(_C.detector_options(), _C.synthetic_options())
    given = vars(parser.parse_args(arguments))
    path, description, like = given.pop("path"), given.pop("synthetic"), given.pop("like")
    as_json, window = given.pop("json"), given.pop("window")
    if (path is None) == (description is None):
        parser.error("give either PATH or --synthetic")
    if like is not None and description is None:
        parser.error("--like goes with --synthetic")
    options = {name: value for name, value in given.items() if value is not None}
    try:
        done = (
            rescore(path, window=window, **options)
            if description is None
            else rescore_synthetic(description, like=like, window=window, **options)
        )
    except (NoReportError, ValueError) as error:
        print(f"straggler rescore: {error}", file=sys.stderr)
        return 1
    print(json.dumps(asdict(done)) if as_json else _text(done))
    for warning in done.warnings:
        print(f"straggler rescore: {warning}", file=sys.stderr)
    return 0


def _parser(detector: list[dict[str, str]], synthetic: list[dict[str, str]]) -> argparse.ArgumentParser:
    rows = [f"  {row['name']:13} {_help(row)}" for row in synthetic]
    parser = argparse.ArgumentParser(
        prog="straggler rescore",
        description="Feeds recorded or synthetic windows through the detector again, under other options.",
        epilog="SPEC is name=value,name=value of:\n" + "\n".join(rows),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", type=Path, nargs="?", help="the folder that STRAGGLER_DIR named, or a job.jsonl in it")
    parser.add_argument("--synthetic", metavar="SPEC", help="windows that are made up, instead of PATH; see below")
    parser.add_argument("--like", type=Path, metavar="PATH", help="with --synthetic: with the noise of a recorded run")
    parser.add_argument("--json", action="store_true", help="print one JSON object, and no text")
    parser.add_argument("--window", type=int, metavar="N", help="steps a window (1 to 1000; default: as recorded)")
    for row in detector:
        flag = "--" + row["name"].replace("_", "-")
        parser.add_argument(flag, metavar="V", help=_help(row).replace("%", "%%"))
    return parser


def _help(row: dict[str, str]) -> str:
    unit = f" {row['unit']}" if row["unit"] else ""
    return f"{row['text']} ({row['allowed']}; default {row['default']}{unit})"


def _text(done: Rescored) -> str:
    steps = [f"step {verdict.step}" for verdict in done.verdicts]
    lines = [f"{step}: {text}" for step, text in zip([*steps, "in the end"], done.texts, strict=True)]
    abstained = f"{done.windows_abstained} abstained ({done.windows_abstained / done.windows:.0%})"
    counts = [
        f"{done.windows} windows of {done.window} steps and {done.ranks} ranks judged",
        f"{done.windows_incomplete} incomplete",
        abstained,
    ]
    if done.windows_late:
        counts.append(f"{done.windows_late} of a rank too late")
    if done.windows_left_out:
        counts.append(f"{done.windows_left_out} of a rank left out, since steps are missing")
    options = " ".join(f"{name}={value}" for name, value in done.options)
    return "\n".join([*lines, "", ", ".join(counts), f"options: {options}", f"windows: {done.source}"])
