"""Training of more than one kind, and with several groups at once: who is late is named, whoever waits for it.

One job of four ranks runs several sessions. Their steps are of about 25 ms, most of it sleep, and in most of them one
rank sleeps 10 ms more in each step. A rank's self time is taken from the windows that it sent, as a median over steps:
then what other work on the machine adds now and then is no part of it.
"""

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ranks import Job, read_lines, run_ranks

RANKS = 4
STEPS = 130
WARM_UP_STEPS = 5
DELAY_MS = 10
EQUAL_MS = 3  # that far apart are the self times of ranks that do the same

LIVE = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

late = 0.0  # seconds that this rank sleeps where its session says
place = ""

def sleep(seconds, here):
    time.sleep(seconds + (late if here == place else 0))

class Layer(torch.nn.Module):
    def __init__(self, number):
        super().__init__()
        self.number = number
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x):
        sleep(0.004, f"forward {self.number}")
        out = self.linear(x)
        out.register_hook(lambda gradient: sleep(0.004, f"backward {self.number}"))
        return out

def mlp():
    torch.manual_seed(0)
    return torch.nn.Sequential(*(Layer(number) for number in range(3)))

def train(model, between=lambda: None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.ones(4, 64)
    for _ in range(int(os.environ["STEPS"])):
        sleep(0.001, "input")
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        between()
        loss.backward()
        optimizer.step()

def ddp():
    train(DistributedDataParallel(mlp()))

def fsdp2(**options):
    model = mlp()
    for layer in model:
        fully_shard(layer, **options)
    train(fully_shard(model, **options))

def hsdp():
    # Each rank is in a group that shards and in one that replicates.
    fsdp2(mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")))

def two_groups():
    # Who waits for a late partner in its pair comes late to the backward of all, and is not to blame for it.
    pairs = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])]
    value = torch.ones(8)

    def meet():
        sleep(0.001, "pair")
        dist.all_reduce(value, group=pairs[RANK // 2])

    train(DistributedDataParallel(mlp()), meet)

for name, who, where in json.loads(os.environ["SESSIONS"]):
    late, place = (float(os.environ["DELAY_MS"]) / 1e3, where) if RANK == who else (0.0, "")
    init(timeout=timedelta(seconds=30))
    globals()[name]()
    dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Session:
    """What trains, and which rank is late and where; nobody if the rank is None."""

    kind: str
    rank: int | None = None
    place: str = ""

    def __str__(self) -> str:
        return f"{self.kind}, nobody" if self.rank is None else f"{self.kind}, rank {self.rank} at {self.place}"


SESSIONS = [
    Session("ddp"),
    Session("ddp", 2, "forward 1"),
    Session("fsdp2"),
    Session("fsdp2", 2, "forward 1"),
    Session("fsdp2", 3, "backward 1"),
    Session("hsdp", 1, "backward 0"),
    Session("two_groups"),
    Session("two_groups", 3, "pair"),
]


def run_sessions(folder: Path, sessions: list[Session]) -> Job:
    wanted = json.dumps([[session.kind, session.rank, session.place] for session in sessions])
    how = {"SESSIONS": wanted, "STEPS": str(STEPS), "DELAY_MS": str(DELAY_MS)}
    return run_ranks(folder, LIVE, RANKS, seconds=150, **how).succeeded()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[Session, list[dict[str, Any]]]:
    """The lines of job.jsonl, by session."""
    job = run_sessions(tmp_path_factory.mktemp("live"), SESSIONS)
    by_session: list[list[dict[str, Any]]] = []
    for line in read_lines(job.records / "job.jsonl"):
        if line["type"] == "session":
            by_session.append([])
        by_session[-1].append(line)
    return dict(zip(SESSIONS, by_session, strict=True))


def of_type(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["type"] == kind]


def self_ms(lines: list[dict[str, Any]]) -> list[float]:
    """The median self time of a step, by rank."""
    times: list[list[float]] = [[] for _ in range(RANKS)]
    for window in of_type(lines, "window"):
        skipped = max(0, WARM_UP_STEPS - window["first_step"])
        times[window["rank"]] += [us / 1e3 for us in window["self_us"][skipped:]]
    return [statistics.median(rank) for rank in times]


@pytest.mark.parametrize("session", SESSIONS, ids=str)
def test_who_is_late_is_named_and_nobody_else(session: Session, lines: dict[Session, list[dict[str, Any]]]) -> None:
    """At the end, and in no line before. A rank that waited in one group is not blamed in another."""
    report = of_type(lines[session], "report")[-1]
    culprits = [] if session.rank is None else [session.rank]
    assert report["verdict"]["ranks"] == culprits, report["verdict"]
    assert report["verdict"]["kind"] == ("straggler" if culprits else "none")
    if culprits:
        assert report["verdict"]["excess_ms"] == pytest.approx(DELAY_MS, abs=EQUAL_MS)
    named = {rank for verdict in of_type(lines[session], "verdict") for rank in verdict["ranks"]}
    assert named <= set(culprits)
    assert report["steps"] >= STEPS - 20
    assert report["steps_found_by"] == "graph_task"


@pytest.mark.parametrize("session", SESSIONS, ids=str)
def test_the_self_time_of_the_late_is_longer_and_that_of_the_others_equal(
    session: Session, lines: dict[Session, list[dict[str, Any]]]
) -> None:
    times = self_ms(lines[session])
    others = [time for rank, time in enumerate(times) if rank != session.rank]
    assert max(others) - min(others) < EQUAL_MS, times
    if session.rank is not None:
        assert times[session.rank] - statistics.median(others) == pytest.approx(DELAY_MS, abs=EQUAL_MS), times
