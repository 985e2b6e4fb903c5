"""A recorded run through our detector again, less or more sensitive than it was."""

from __future__ import annotations

from pathlib import Path

import torch_straggler
from torch_straggler.replay import NoReportError

GATES = ("absolute_gate_ms", "relative_gate", "noise_gate")  # an excess below all of them is nobody's concern


def named(folder: Path, multiplier: float) -> list[tuple[int, int]] | None:
    """(rank, step) of each rank that is named, each once, with the detector's gates times `multiplier`; steps are those
    that the detector counts. None: this torch_straggler cannot feed records again (it has no `rescore`)."""
    rescore = getattr(torch_straggler, "rescore", None)
    if rescore is None:
        return None
    try:
        gates = {name: float(value) for name, value in rescore(folder).options if name in GATES}
        found = rescore(folder, **{name: multiplier * value for name, value in gates.items()})
    except NoReportError:  # no window of it can be judged
        return []
    first: dict[int, int] = {}
    for verdict in found.verdicts:
        if verdict.kind == "straggler" and verdict.step is not None:
            for rank in verdict.ranks:
                first.setdefault(rank, verdict.step)
    return list(first.items())
