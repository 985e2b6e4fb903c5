"""What the windows say of where a rank's own time went: input, processor, waiting for a processor. Two ranks, DDP."""

import statistics
from collections.abc import Callable
from typing import Any

import pytest
from ranks import Job, read_lines

STEPS = 120

# Steps of some 20 ms, nearly all of it sleep, so that the training threads have processors enough. LOADER says whether
# batches come from a DataLoader without workers, from one with two, or from a list.
TRAINING = f"""
from contextlib import nullcontext
from torch.utils.data import DataLoader

class Layer(torch.nn.Linear):
    def forward(self, x):
        time.sleep(0.02)
        return super().forward(x)

def loader():
    batches = [torch.ones(32)] * (4 * {STEPS})
    if os.environ["LOADER"] == "none":
        return [torch.ones(4, 32)] * {STEPS}
    return DataLoader(batches, batch_size=4, num_workers=2 if os.environ["LOADER"] == "workers" else 0)

def profiler():
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])

init("straggler_gloo", timeout=timedelta(seconds=30))
model = torch.nn.parallel.DistributedDataParallel(Layer(32, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
with profiler() if "PROFILE" in os.environ else nullcontext() as profile:
    for batch in loader():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
if profile is not None:
    tell(scopes={{event.key: event.count for event in profile.key_averages()}})
dist.destroy_process_group()
"""

Windows = list[dict[str, Any]]


def windows(job: Job, rank: int) -> Windows:
    """The full windows of a rank, from the first on in which delays are put and the thread's times are known."""
    return [w for w in job.of_type("window") if w["rank"] == rank and w["first_step"] >= 10 and len(w["self_us"]) == 10]


def a_step(found: Windows, field: str) -> float:
    """Milliseconds a step, of the typical window."""
    assert len(found) >= 5
    return statistics.median(window[field] for window in found) / 10_000


@pytest.mark.parametrize("loader", ["plain", "workers"])
def test_a_slow_loader_shows_as_input_time_on_its_rank_alone(loader: str, job: Callable[..., Job]) -> None:
    done = job(TRAINING, LOADER=loader, STRAGGLER_INJECT="rank=1,where=input,ms=5").succeeded()
    healthy, slow = (a_step(windows(done, rank), "input_us") for rank in range(2))
    assert slow - healthy == pytest.approx(5, abs=1.5)
    assert healthy < 2.5, "the loader's own time"
    for rank in range(2):
        for window in windows(done, rank):
            assert window["input_us"] <= sum(window["self_us"]) + 10, "input time is part of self time"


def test_a_delay_elsewhere_is_no_input_time(job: Callable[..., Job]) -> None:
    done = job(TRAINING, LOADER="plain", STRAGGLER_INJECT="rank=1,where=forward,ms=5").succeeded()
    assert all(a_step(windows(done, rank), "input_us") < 2.5 for rank in range(2))


def test_without_a_data_loader_input_time_is_null(job: Callable[..., Job]) -> None:
    done = job(TRAINING, LOADER="none").succeeded()
    found = done.of_type("window")
    assert found
    assert [window["input_us"] for window in found] == [None] * len(found)


def test_a_rank_that_computes_more_shows_it_in_processor_time(job: Callable[..., Job]) -> None:
    """The other rank waits as long inside its collectives, without a processor."""
    done = job(TRAINING, LOADER="none", STRAGGLER_INJECT="rank=1,where=forward,ms=5,spin=true").succeeded()
    if any(window["cpu_us"] is None for rank in range(2) for window in windows(done, rank)):
        pytest.skip("this kernel keeps no account of threads: run on one with CONFIG_SCHED_INFO")
    healthy, slow = windows(done, 0), windows(done, 1)
    assert a_step(slow, "cpu_us") - a_step(healthy, "cpu_us") == pytest.approx(5, abs=2)
    for window in healthy + slow:
        assert window["run_delay_us"] is not None
    first = [window for window in done.of_type("window") if window["first_step"] == 0]
    assert [window["cpu_us"] for window in first] == [None, None], "there is no reading before the first"


def test_torchs_profiler_and_the_records_are_both_right_at_once(job: Callable[..., Job]) -> None:
    done = job(TRAINING, LOADER="plain", PROFILE="1", STRAGGLER_INJECT="rank=1,where=input,ms=5").succeeded()
    scope = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    for rank in done.ranks:
        assert rank.told["scopes"][scope] == STEPS + 1, "the last one finds the end of the data"
        assert rank.our_lines == []
    healthy, slow = (a_step(windows(done, rank), "input_us") for rank in range(2))
    assert slow - healthy == pytest.approx(5, abs=1.5)
    assert done.report["records_dropped"] == 0


def test_input_time_is_seen_in_every_session_and_in_a_fork_nothing_hangs(job: Callable[..., Job]) -> None:
    """A group made anew has a session of its own; a forked child fetches with what it inherited."""
    done = job(
        """
        from torch.utils.data import DataLoader
        def train():
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
            for batch in DataLoader([torch.ones(4)] * 40, batch_size=1):
                time.sleep(0.002)
                model(batch).sum().backward()
        for session in range(2):
            init("straggler_gloo", timeout=timedelta(seconds=30))
            train()
            child = os.fork()
            if child == 0:
                for _ in DataLoader([torch.ones(4)] * 100, batch_size=1):
                    pass
                os._exit(0)
            tell(**{f"child{session}": os.waitpid(child, 0)[1]})
            dist.destroy_process_group()
            for _ in DataLoader([torch.ones(4)] * 100, batch_size=1):
                pass
        """
    ).succeeded()
    assert done.told == [{"child0": 0, "child1": 0}] * 2
    sessions: list[Windows] = []
    for line in read_lines(done.records / "job.jsonl"):
        if line["type"] == "session":
            sessions.append([])
        elif line["type"] == "window":
            sessions[-1].append(line)
    assert len(sessions) == 2
    for found in sessions:
        assert {window["rank"] for window in found} == {0, 1}
        assert all(window["input_us"] > 0 for window in found)


def test_a_fetch_of_another_thread_is_not_the_training_threads(job: Callable[..., Job]) -> None:
    done = job(
        """
        import queue
        from torch.utils.data import DataLoader
        init("straggler_gloo", timeout=timedelta(seconds=30))
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        ready = queue.Queue()
        def prefetch():
            for batch in DataLoader([torch.ones(4)] * 40, batch_size=1):
                ready.put(batch)
        threading.Thread(target=prefetch).start()
        for _ in range(40):
            model(ready.get()).sum().backward()
        dist.destroy_process_group()
        """
    ).succeeded()
    found = done.of_type("window")
    assert found
    assert {window["input_us"] for window in found} == {None}
