"""The report of a job, as Python values: the `report` record of the record schema, number 1.

Every field that was not measured is None, never 0. Fields that a later version adds are ignored here.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

SCHEMA = 1


@dataclass(frozen=True)
class Group:
    """A process group on the inner backend `backend`. `ranks` are global, in the order of their ranks in the group."""

    name: str
    desc: str
    backend: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Verdict:
    """The named outcome.

    Attributes:
        kind: `straggler`, `none` (nobody is to blame) or `abstain` (cannot be known).
        ranks: global ranks that are named, worst first; empty unless kind is `straggler`.
        hosts: their hosts, in the same order.
        group: name of the group whose operations showed it, or None.
        cause: what makes them late, or `not_attributed`.
        excess_ms: self time of a step above the median of the other ranks, milliseconds; of the worst rank.
        share: excess as a share of the job's step time, 0 to 1.
        since_step: first step of the excess, counted from 0.
        confidence: 0 to 1; 1 minus the probability of such an excess by chance.
        reason: a sentence with the numbers behind it.
    """

    kind: str
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    group: str | None
    cause: str
    excess_ms: float | None
    share: float | None
    since_step: int | None
    confidence: float | None
    reason: str


@dataclass(frozen=True)
class RankReport:
    """One rank. Times are milliseconds, means over its steps without the first ones, unless said otherwise.

    Attributes:
        rank: global rank.
        host, pid: where it ran; None if it has told nothing at all.
        steps: steps that were seen.
        step_ms: time of a step.
        self_ms: self time in a step, on the rank's own clock: from a release to the next arrival, summed.
        wait_ms: time in a step in which the rank was blocked by the last arriver.
        lateness_p50_ms, lateness_p95_ms, lateness_max_ms: arrival minus the first arriver's, per operation.
        last: operations at which it was the last arriver.
        operations_compared: operations of which every rank's arrival is known.
        time_lost_share: share of the job's time, 0 to 1, in which the others waited for this rank.
        records_dropped: operations that it could not record.
    """

    rank: int
    host: str | None
    pid: int | None
    steps: int
    step_ms: float | None
    self_ms: float | None
    wait_ms: float | None
    lateness_p50_ms: float | None
    lateness_p95_ms: float | None
    lateness_max_ms: float | None
    last: int
    operations_compared: int
    time_lost_share: float | None
    records_dropped: int


@dataclass(frozen=True)
class ArrivalSkew:
    """Arrival skew of one kind of operation: last arrival minus first, milliseconds.

    `bound_ms` is the error bound of each of the three figures; None if there is none.
    """

    kind: str
    operations: int
    skew_p50_ms: float | None
    skew_p95_ms: float | None
    skew_max_ms: float | None
    bound_ms: float | None


@dataclass(frozen=True)
class JobReport:
    """What a session saw.

    Attributes:
        world_size: ranks of the job.
        ranks_reported: ranks whose measurements reached rank 0.
        clocks: how many clocks the ranks have: the ranks of a host share one.
        steps: steps of which every rank told its self time.
        step_ms: time of a step, milliseconds.
        steps_found_by: `graph_task`, `op_period`, `time` or `none`.
        groups: the groups that were observed.
        collectives: operations that were recorded, on all ranks.
        records_dropped: operations that could not be recorded, on all ranks.
        verdict: who is named, or nobody.
        ranks: one entry a rank, in the order of rank.
        skew: one entry a kind of operation.
        notes: what was measured with less knowledge, a sentence each.
    """

    world_size: int
    ranks_reported: int
    clocks: int
    steps: int
    step_ms: float | None
    steps_found_by: str
    groups: tuple[Group, ...]
    collectives: int
    records_dropped: int
    verdict: Verdict
    ranks: tuple[RankReport, ...]
    skew: tuple[ArrivalSkew, ...]
    notes: tuple[str, ...]

    @staticmethod
    def from_json(text: str) -> JobReport:
        """Reads a `report` record.

        Raises:
            ValueError: not JSON, another schema number, another type of record, or a field is missing.
        """
        record = json.loads(text)
        if not isinstance(record, dict) or record.get("type") != "report":
            raise ValueError("not a record of type 'report'")
        if record.get("schema") != SCHEMA:
            raise ValueError(
                f"the record has schema {record.get('schema')!r}, this torch_straggler reads schema {SCHEMA}; "
                "read it with the version that wrote it"
            )
        try:
            return _job(record)
        except KeyError as error:
            raise ValueError(f"the report record has no field {error}") from None


def report() -> JobReport | None:
    """The report of the session that runs in this process, or that has just ended; None if there is none.

    Only global rank 0 gathers, so on other ranks the answer is None. Starts no collective and waits for nobody.
    """
    library = sys.modules.get("torch_straggler._C")
    text = library.report_json() if library is not None else None
    return JobReport.from_json(text) if text is not None else None


def _job(record: dict[str, Any]) -> JobReport:
    return JobReport(
        world_size=record["world_size"],
        ranks_reported=record["ranks_reported"],
        clocks=record["clocks"],
        steps=record["steps"],
        step_ms=record["step_ms"],
        steps_found_by=record["steps_found_by"],
        groups=tuple(_fill(Group, group) for group in record["groups"]),
        collectives=record["collectives"],
        records_dropped=record["records_dropped"],
        verdict=_fill(Verdict, record["verdict"]),
        ranks=tuple(_fill(RankReport, rank) for rank in record["ranks"]),
        skew=tuple(_fill(ArrivalSkew, skew) for skew in record["skew"]),
        notes=tuple(record["notes"]),
    )


def _fill(kind: type[Any], record: dict[str, Any]) -> Any:
    """An instance of a dataclass from the fields of the same names; lists become tuples."""
    values = {name: record[name] for name in kind.__dataclass_fields__}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})
