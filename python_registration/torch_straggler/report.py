"""The report of a job, as Python values: the `report` record of the record schema, number 1.

Every field that was not measured is None, never 0. Fields that a later version adds are ignored here; fields that an
earlier version did not write get their defaults.
"""

from __future__ import annotations

import json
import sys
from dataclasses import MISSING, dataclass, fields
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
class OsEvidence:
    """What the operating system counted for a rank, in the mean of a step over up to ten windows.

    None: not measured there.

    Attributes:
        voluntary_switches, involuntary_switches: the training thread gave its processor up; it was taken from it.
        major_faults: pages of the training thread that had to be read from a disk.
        block_io_ms: the training thread was blocked until a disk had done what it asked for, milliseconds.
        workers_block_io_ms: the same of its data loader's workers, all together.
        read_bytes: bytes that came from storage, for the process and its workers.
        read_call_bytes: bytes that read() and its like returned to them, from wherever, pipes included.
        received_bytes, sent_bytes, retransmits: bytes through the network interfaces without the loopback, and TCP
            segments sent again, of the host or the container.
        cpu_pressure_ms, io_pressure_ms, memory_pressure_ms: some task of the container or the host waited for that.
        io_full_pressure_ms, memory_full_pressure_ms: all of its tasks that could have run did.
        quota_throttles, quota_throttled_ms: its control group had used its processor quota up: so often; for so long,
            summed over processors.
        sm_clock_mhz, device_temperature_c: of the NVIDIA device that the process trains on, the mean over the readings.
        device_slowed_by_heat, device_slowed_by_power: the share of the readings, 0 to 1, in which it was so.
    """

    voluntary_switches: float | None = None
    involuntary_switches: float | None = None
    major_faults: float | None = None
    block_io_ms: float | None = None
    workers_block_io_ms: float | None = None
    read_bytes: float | None = None
    read_call_bytes: float | None = None
    received_bytes: float | None = None
    sent_bytes: float | None = None
    retransmits: float | None = None
    cpu_pressure_ms: float | None = None
    io_pressure_ms: float | None = None
    io_full_pressure_ms: float | None = None
    memory_pressure_ms: float | None = None
    memory_full_pressure_ms: float | None = None
    quota_throttles: float | None = None
    quota_throttled_ms: float | None = None
    sm_clock_mhz: float | None = None
    device_temperature_c: float | None = None
    device_slowed_by_heat: float | None = None
    device_slowed_by_power: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The named outcome.

    Attributes:
        kind: `straggler`; `imbalance` (another rank is late each time, or one stage limits a pipeline), `network`
            (moving data takes longer than it did), `job_wide` (every rank is slower than it was) or `none`: nobody is
            to blame; `cleared` (what was said before is over); `abstain` (cannot be known).
        ranks: global ranks that are named, worst first; empty where nobody is.
        hosts: their hosts, in the same order.
        group: name of the group whose operations showed it, or None.
        cause: what makes the worst late: `host_input` (its data loader or its disk), `host_launch` (it waits for a
            processor), `host_compute` (it computes more), or `not_attributed`; of the kind of that name, `network`;
            of an imbalance, `stage_imbalance` (one stage of a pipeline works longer than the others).
        excess_ms: self time of a step above the median of the rank's peers, or above its own past where it has none,
            milliseconds; of the worst rank. Where nobody is named, what a step takes longer.
        share: excess as a share of the job's step time, 0 to 1.
        since_step: first step of the excess, counted from 0.
        confidence: 0 to 1; 1 minus the probability of such an excess by chance.
        reason: a sentence with the numbers behind it.
        step: the last step that was judged.
        rule: the rule by which it was found, as in `STRAGGLER_RULE`.
        windows: windows of steps that were compared.
        input_ms, cpu_ms, run_delay_ms: of the worst rank's excess, milliseconds a step: inside its data loader's fetch;
            its training thread ran on a processor; it was ready to run and waited for one.
        operations_compared: operations since the excess began of which every rank's arrival is known.
        last_share: of the operations compared, at how many the worst rank was the last arriver, 0 to 1.
        last_p_value: probability that it is last so often by chance.
        os, os_peers: what the operating system counted for the worst rank, and in the median of its peers; None where
            nobody is named or nothing was counted.
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
    step: int | None = None
    rule: str = "self_time"
    windows: int = 0
    input_ms: float | None = None
    cpu_ms: float | None = None
    run_delay_ms: float | None = None
    operations_compared: int = 0
    last_share: float | None = None
    last_p_value: float | None = None
    os: OsEvidence | None = None
    os_peers: OsEvidence | None = None


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
        last: operations at which it was the last arriver, beyond doubt: between clocks it may be open who was.
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
class ClockOffset:
    """A clock other than that of the rank that collects. The truth is within the bound of each figure.

    Attributes:
        ranks: global ranks that read it: those of a host, as a rule.
        at_ns: what it read when the offset was `offset_ms`, nanoseconds.
        offset_ms, offset_bound_ms: the collecting rank's clock less this one, milliseconds; None if it is not known.
        drift_ppm, drift_bound_ppm: by how much the offset changes, parts per million of the time on this clock: the
            mean over the last `drift_span_ms`; None if it is not known.
        drift_span_ms: that span, milliseconds.
        leaps: how often a clock has leapt, after which nothing was known for a while.
    """

    ranks: tuple[int, ...]
    at_ns: int | None
    offset_ms: float | None
    offset_bound_ms: float | None
    drift_ppm: float | None
    drift_bound_ppm: float | None
    drift_span_ms: float | None
    leaps: int


@dataclass(frozen=True)
class MitigationReport:
    """What mitigation did on one rank. All are totals since its session began.

    Attributes:
        rank: global rank.
        mode: `carry` (a late gradient is added later) or `drop` (it is discarded for good).
        armed: whether slots may be filled for the rank before it arrives.
        text: for what it is armed, or why it is not; a clause.
        filled_by_proxy: slots of any kind that were filled for it.
        late: slots of gradients that were filled before it arrived in them.
        applied: late gradients that went with a later contribution.
        dropped: late gradients that were discarded for good.
        pending: late gradients that it still owes. `torch_straggler.flush()` before the last step applies them.
        staleness_mean, staleness_max: steps by which a gradient was late when it was applied; None if none was.
        saved_ms: what the other ranks would have waited for this one and did not, milliseconds.
    """

    rank: int
    mode: str
    armed: bool
    text: str
    filled_by_proxy: int
    late: int
    applied: int
    dropped: int
    pending: int
    staleness_mean: float | None
    staleness_max: int | None
    saved_ms: float


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
        verdict: the one in force: who is named, or nobody.
        ranks: one entry a rank, in the order of rank; in a brief report only of the ranks that are named.
        skew: one entry a kind of operation; none in a brief report.
        notes: what was measured with less knowledge, a sentence each; in a brief report the first says that it is one.
        history: the verdicts that were told, oldest first; the last of them if there were many.
        windows_compared: windows of steps that were judged.
        windows_incomplete: of them, those of which not every rank told.
        windows_late: windows of a rank that came in after theirs had been judged.
        mitigation: one entry a rank that told of its mitigation, none where it is off; in a brief report only of the
            ranks that are named.
        clock_offsets: one entry a clock other than that of rank 0, none where all ranks share one; none in a brief
            report.
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
    history: tuple[Verdict, ...] = ()
    windows_compared: int = 0
    windows_incomplete: int = 0
    windows_late: int = 0
    mitigation: tuple[MitigationReport, ...] = ()
    clock_offsets: tuple[ClockOffset, ...] = ()

    @staticmethod
    def from_json(text: str) -> JobReport:
        """Reads a `report` record.

        Raises:
            ValueError: not JSON, another schema number, another type of record, a field that is missing or of another
                type.
        """
        try:
            record = json.loads(text)
        except RecursionError:
            raise ValueError("not a record: nested too deeply") from None
        if not isinstance(record, dict) or record.get("type") != "report":
            raise ValueError("not a record of type 'report'")
        if record.get("schema") != SCHEMA:
            raise ValueError(
                f"the record has schema {record.get('schema')!r}, this torch_straggler reads schema {SCHEMA}; "
                "read it with the version that wrote it"
            )
        job: JobReport = _read(JobReport, record)
        return job


def read_verdict(text: str) -> Verdict:
    """Reads a `verdict` record. Raises ValueError as `JobReport.from_json` does."""
    verdict: Verdict = _read(Verdict, json.loads(text))
    return verdict


def report() -> JobReport | None:
    """The report of the session that runs in this process, or that has just ended; None if there is none.

    On the rank that collects, global rank 0, it is complete and of this moment. On every other rank it is the brief
    report that rank 0 published last: all totals, the verdict, and the rows of the ranks that are named. It is some
    seconds old (up to 20 with thousands of ranks; with a FileStore as old as the verdict), and None in the first
    seconds of a job, where ranks cannot reach rank 0, or if what was found in the store is no report.

    Starts no collective and waits for nobody.
    """
    library = sys.modules.get("torch_straggler._C")
    try:
        text = library.report_json() if library is not None else None
        return JobReport.from_json(text) if text is not None else None
    except ValueError:
        return None


# ---- Reading a record ------------------------------------------------------------------------------------------------


def _read(kind: type[Any], record: Any) -> Any:
    """An instance of a dataclass from the fields of the same names; lists become tuples."""
    if not isinstance(record, dict):
        raise ValueError(f"the record's {kind.__name__} is no object")
    values = {}
    for field in fields(kind):
        if field.name in record:
            values[field.name] = _value(field.name, str(field.type), record[field.name])
        elif field.default is MISSING:
            raise ValueError(f"the report record has no field '{field.name}'")
    return kind(**values)


def _value(name: str, expected: str, value: Any) -> Any:
    """`value` as the annotation `expected` says: a plain type, `Type | None`, `tuple[Type, ...]`, or one of ours."""
    if value is None and expected.endswith(" | None"):
        return None
    if expected.startswith("tuple["):
        if not isinstance(value, list):
            raise ValueError(f"the record's field '{name}' is no list")
        inner = expected.removeprefix("tuple[").removesuffix(", ...]")
        return tuple(_value(name, inner, element) for element in value)
    plain = expected.removesuffix(" | None")
    if plain not in _PLAIN:
        return _read(globals()[plain], value)
    if not isinstance(value, _PLAIN[plain]) or isinstance(value, bool) != (plain == "bool"):
        raise ValueError(f"the record's field '{name}' is no {plain}")
    return value


_PLAIN: dict[str, Any] = {"bool": bool, "int": int, "float": (int, float), "str": str}
