"""A fault beside gloo: the same script on straggler_gloo and on gloo, and how both ended.

A script tells when the fault happened, on the clock that all processes of a host share: `tell(fault=time.monotonic())`.
Where it tells nothing, the start of the job counts.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from ranks import Job, Rank, run_beside_gloo

SLOWER = 2.0  # seconds by which a rank may end later than on gloo, at most

# Code and number of ranks, and the options of `run_ranks`; gives both jobs, ours first.
BesideGloo: TypeAlias = Callable[..., tuple[Job, Job]]


def beside_gloo(folder: Path, code: str, ranks: int = 2, **options: Any) -> tuple[Job, Job]:
    """Runs both at once. Standard error is buffered as it is for users: an environment without PYTHONUNBUFFERED."""
    return run_beside_gloo(folder, code, ranks, PYTHONUNBUFFERED="", **options)


def assert_alike(ours: Job, gloos: Job, lines: int = 1, slower: float = SLOWER) -> None:
    """Every rank ended with the exit code and the exception of its twin on gloo, and not later.

    Args:
        lines: so many lines of ours at most on the standard error of a rank, the report aside.
    """
    both = f"{ours.text()}\n======== gloo\n{gloos.text()}"
    for our, gloo in zip(ours.ranks, gloos.ranks, strict=True):
        assert (our.exit_code, our.error) == (gloo.exit_code, gloo.error), both
        assert seconds_after_the_fault(our, ours) <= seconds_after_the_fault(gloo, gloos) + slower, both
        assert len(our.our_lines) <= lines, both


def seconds_after_the_fault(rank: Rank, job: Job) -> float:
    faults = [told["fault"] for told in job.told if "fault" in told]
    return rank.ended - max(faults) if faults else rank.seconds
