"""What is run: delays, layouts, culprits, and what is true of each. Pure.

The delays are those of WORKLOADS (bench/scoreboard/README.md lists them). A case is one session of one job. Sessions
that need nothing of the machine but a rule of the injection share a launch.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

STEPS = 420
BASE_MS = 30.0
EARLIEST, LATEST = 60, 100  # the first late step is drawn from these
SESSIONS_A_LAUNCH = 12
LAYOUTS = {"ddp": (2, 4, 8), "fsdp": (2, 4, 8), "tensor_by_data": (4, 8), "pipeline": (2, 4, 8)}
MICRO_BATCHES = {"pipeline": 4}  # backwards a step, where it is more than one
SEEDS = ("tune", "score")


@dataclass(frozen=True)
class Delay:
    """One row of the table.

    Attributes:
        rules: of the injection, in which {rank}, {ms}, {begin}, {middle} and {seed} stand for what they say.
        shares: of the base, the sizes that are run. For what is not injected, see disturbances.py.
        blames: whether a rank is to be named. If not, nobody may be.
        cause: the verdict's cause that is right; None: the detector cannot know one, and has to say so.
        kind: what else has to be told.
        means: what the driver does beside the injection: `quota`, `competing` or `network`.
        jobs: that it is run on; empty: on all.
        ranks: how many ranks it is run on; empty: all.
    """

    text: str
    rules: tuple[str, ...] = ()
    shares: tuple[float, ...] = (0.0,)
    blames: bool = True
    cause: str | None = None
    kind: str | None = None
    means: str = "injection"
    jobs: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()


DELAYS = {
    "D2": Delay("in the backward", ("rank={rank},where=backward,ms={ms},from={begin}",), (0.05, 0.1, 0.2)),
    "D6": Delay("rank 0's duty: ten steps' time every 20 steps", ("rank=0,where=input,ms=300,every=20",), blames=False),
    "D1": Delay(
        "before forward, asleep", ("rank={rank},where=forward,ms={ms},from={begin}",), (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
    ),
    "D1 running": Delay(
        "before forward, on the processor",
        ("rank={rank},where=forward,ms={ms},from={begin},spin=true",),
        (0.2,),
        cause="host_compute",
    ),
    "D3": Delay(
        "in the fetch of a batch", ("rank={rank},where=input,ms={ms},from={begin}",), (0.05, 0.2), cause="host_input"
    ),
    "D4 quota": Delay("a quota on the rank's processor time", shares=(0.5,), cause="host_launch", means="quota",
                      ranks=(2, 4)),
    "D4 competing": Delay("another process on the rank's processor", shares=(0.5,), cause="host_launch",
                          means="competing", ranks=(2, 4)),
    "D5": Delay("a rate limit on one rank's link", shares=(2.0,), blames=False, kind="network", means="network",
                ranks=(2, 4)),
    "D7": Delay("everyone 30 % slower from the middle on", ("rank=all,where=forward,ms={ms},from={middle}",), (0.3,),
                blames=False, kind="job_wide"),
    "D8": Delay("another rank each step", ("rank=0,where=forward,ms={ms},rotate=true,from={begin}",), (0.3,),
                blames=False, kind="imbalance"),
    "D9": Delay("every rank pauses 200 ms, 1 step in 100",
                ("rank=all,where=forward,ms=200,probability=0.01,seed={seed}",), blames=False),
    "clean": Delay("nothing", blames=False),
}  # fmt: skip


@dataclass(frozen=True, order=True)
class Case:
    """One session. `culprit` is the rank that is delayed, also where nobody is to be blamed (D5); None: no rank more
    than others. Steps count from 0."""

    delay: str
    share: float
    job: str
    ranks: int
    culprit: int | None
    seed: int
    begins: int
    steps: int = STEPS
    base_ms: float = BASE_MS

    @property
    def key(self) -> str:
        size = f"{self.share:.0%}" if self.share else "-"
        rank = "-" if self.culprit is None else self.culprit
        return f"{self.delay} {size} {self.job} {self.ranks} rank {rank} seed {self.seed}"

    @property
    def truth(self) -> Delay:
        return DELAYS[self.delay]

    @property
    def ms(self) -> float:
        return round(self.share * self.base_ms, 3)

    def rules(self) -> list[str]:
        """Of the session, its steps counted from 0."""
        fields = {"rank": self.culprit, "begin": self.begins, "middle": self.steps // 2, "seed": self.seed}
        parts = MICRO_BATCHES.get(self.job, 1)
        rules = []
        for rule in self.truth.rules:
            ms = self.ms / parts if "where=backward" in rule else self.ms  # in each of the step's backwards
            rules.append(rule.format(ms=ms, **fields))
        return rules


@dataclass(frozen=True)
class Launch:
    """Sessions one after the other in the same processes."""

    job: str
    ranks: int
    means: str
    cases: tuple[Case, ...]


# ---- Matrix ----------------------------------------------------------------------------------------------------------


def seeds(which: str, rounds: int) -> list[int]:
    """Thresholds are chosen on even seeds, and scored on odd ones."""
    return [2 * number + SEEDS.index(which) for number in range(rounds)]


def culprits(ranks: int) -> list[int]:
    """First, middle, last."""
    return sorted({0, ranks // 2, ranks - 1})


def matrix(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        for name, delay in DELAYS.items():
            for share in delay.shares:
                for job in delay.jobs or LAYOUTS:
                    for ranks in (n for n in LAYOUTS[job] if n in (delay.ranks or LAYOUTS[job])):
                        delayed = delay.blames or delay.means != "injection"
                        for culprit in culprits(ranks) if delayed else (None,):
                            case = Case(name, share, job, ranks, culprit, seed, 0)
                            draw = random.Random(case.key)
                            yield dataclasses.replace(case, begins=draw.randrange(EARLIEST, LATEST))


def launches(cases: Iterable[Case], sessions: int = SESSIONS_A_LAUNCH) -> list[Launch]:
    """In such an order that wherever the run is stopped, the layouts and the delays have been run about equally often:
    each launch of a layout has sessions from all over the layout's list, and the layouts take turns."""
    layouts: dict[tuple[str, int, str], list[Case]] = {}
    for case in cases:
        layouts.setdefault((case.job, case.ranks, case.truth.means), []).append(case)
    queues = []
    for (job, ranks, means), own in layouts.items():
        number = -(-len(own) // sessions)
        queues.append([Launch(job, ranks, means, tuple(own[start::number])) for start in range(number)])
    turns = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(turns) for queue in queues if turn < len(queue)]
