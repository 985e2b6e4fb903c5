"""Groups come and go, processes end with and without goodbye: nothing is left, nothing hangs, nothing crashes."""

from collections.abc import Callable

import pytest
from ranks import Job


def test_five_rounds_in_one_process_leave_no_thread_and_no_descriptor(job: Callable[..., Job]) -> None:
    """CASES 1.36, 1.39, 1.41: each round has a fresh store, one with the launcher, one with rank 0, one in a file."""
    code = """
        import gc, weakref
        alive = []

        def left():
            files = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
            return {"threads": len(os.listdir("/proc/self/task")), "files": sorted(f.split(":")[0] for f in files)}

        def settled(wanted):  # threads of torch's stores take a moment to end
            gc.collect()
            for _ in range(50):
                if wanted in (None, left()):
                    break
                time.sleep(0.02)
            return left()

        def go(backend, store):
            dist.init_process_group(backend, store=store, rank=RANK, world_size=WORLD)
            group = dist.new_group()
            for _ in range(20):
                dist.all_reduce(torch.ones(2), group=group)
            if backend == "straggler_gloo":
                alive.append([weakref.ref(backend_of()), weakref.ref(backend_of(group))])
            if RANK == 1:
                time.sleep(0.2)  # destroys later than its peer
            dist.destroy_process_group()
            try:
                dist.destroy_process_group()
                tell(second="passed")
            except Exception as error:
                tell(**{f"second {backend}": f"{type(error).__name__} {error}"})

        def five_rounds(backend, wanted=None):
            in_a_file = lambda: dist.FileStore(f"{backend}{number}", WORLD)
            stores = (lambda: store_of_round("rank0"), store_of_round, in_a_file)
            ends = []
            for number in range(5):
                go(backend, stores[number % 3]())
                ends.append(settled(wanted))
            return ends

        gloo = five_rounds("gloo")
        ours = five_rounds("straggler_gloo", gloo[-1])
        tell(gloo=gloo, ours=ours, dead=[ref() is None for refs in alive for ref in refs])
        """
    done = job(code).succeeded()
    for told in done.told:
        assert told["ours"] == [told["gloo"][-1]] * 5
        assert told["dead"] == [True] * 10
        assert told["second straggler_gloo"] == told["second gloo"]
    assert len(done.of_type("report")) == 5
    assert [report["ranks_reported"] for report in done.of_type("report")] == [2] * 5


def test_a_script_without_destroy_ends_with_0_and_its_report(job: Callable[..., Job]) -> None:
    """CASES 1.43: within 5 s."""
    code = """
        init()
        for _ in range(20):
            dist.all_reduce(torch.ones(2))
        tell(end=time.monotonic())
        """
    done = job(code).succeeded()
    assert "2 of 2 ranks, 0 steps compared" in done.ranks[0].stderr
    assert "40 collectives seen" in done.ranks[0].stderr
    assert done.report["collectives"] == 40
    assert not [line for rank in done.ranks for line in rank.our_lines]
    assert max(rank.ended - rank.told["end"] for rank in done.ranks) < 5


def test_what_completes_after_the_session_is_ignored(job: Callable[..., Job]) -> None:
    """CASES 2.12: an operation that is open when the session ends, and those that come later."""
    code = """
        from torch_straggler import _C
        init()
        ones = torch.ones(2)
        if RANK == 1:
            time.sleep(3)
        work = dist.all_reduce(ones, async_op=True)
        _C.finish()  # on rank 0 while rank 1 has not joined
        open_at_the_end = not work.is_completed()
        work.wait()
        works = [dist.all_reduce(torch.ones(2), async_op=True) for _ in range(100)]
        for work in works:
            work.wait()
        tell(open=open_at_the_end, ones=ones.tolist(), completed=all(work.is_completed() for work in works))
        dist.destroy_process_group()
        """
    done = job(code).succeeded()
    assert done.told[0]["open"]
    assert [(told["ones"], told["completed"]) for told in done.told] == [([2, 2], True)] * 2
    assert [len(done.operations(rank)) for rank in range(2)] == [1, 1]
    assert done.operations(0)[0]["state"] == "unknown"


def test_python_goes_on_while_a_group_is_dropped_with_an_operation_that_cannot_end(job: Callable[..., Job]) -> None:
    """CASES 1.40, 1.42: neither the destructor nor the end of the session holds the interpreter lock.

    Gloo's destructor waits for the group's timeout, 3 s; what we add is bounded by 2 s.
    """
    code = """
        launcher = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)
        init(timeout=timedelta(seconds=3))
        dist.all_reduce(torch.ones(2))
        ticks, running = [], True

        def tick():
            while running:
                ticks.append(time.monotonic())
                time.sleep(0.02)

        if RANK == 0:
            work = dist.all_reduce(torch.ones(2), async_op=True)
            del work
            ticker = threading.Thread(target=tick)
            ticker.start()
            begun = time.monotonic()
            dropper = threading.Thread(target=dist.destroy_process_group)
            dropper.start()
            dropper.join()
            running = False
            ticker.join()
            gaps = [b - a for a, b in zip(ticks, ticks[1:])]
            tell(took=time.monotonic() - begun, largest=max(gaps))
            launcher.set("done", "")
        else:
            launcher.get("done")  # stuck until then
        """
    told = job(code, seconds=30).told[0]
    assert told["took"] > 0.5, "the end of the group waited for nothing, so nothing is shown"
    assert told["took"] < 3 + 2
    assert told["largest"] < 0.5


def test_the_report_goes_on_where_rank_0_changes_or_is_not_in_the_group(job: Callable[..., Job]) -> None:
    """CASES 5.02, 5.17: each session's report is by its own lowest rank, whoever has left the job before."""
    code = """
        def use(count, **options):
            for _ in range(count):
                dist.all_reduce(torch.ones(2), **options)

        init()
        use(5)
        dist.destroy_process_group()
        if RANK == 0:
            sys.exit()
        RANK, WORLD = RANK - 1, 3  # scaled down: rank 1 becomes rank 0
        init()
        use(7)
        dist.destroy_process_group()
        init("gloo")
        group = dist.new_group([1, 2], backend="straggler_gloo")
        if RANK == 0:
            sys.exit()  # early, and it is in no group of ours
        time.sleep(0.5)
        use(9, group=group)
        dist.destroy_process_group()
        """
    done = job(code, 4).succeeded()
    reports = [(report["collectives"], [rank["rank"] for rank in report["ranks"]]) for report in done.of_type("report")]
    assert reports == [(20, [0, 1, 2, 3]), (21, [0, 1, 2]), (18, [1, 2])]
    assert not [note for report in done.of_type("report") for note in report["notes"]]
    assert not [line for rank in done.ranks for line in rank.our_lines]


@pytest.mark.timeout(120)
def test_fifty_cycles_of_dataloader_workers_do_not_hang(job: Callable[..., Job]) -> None:
    """CASES 5.14, 5.15: workers are forked while threads of ours run; they own no thread or record of ours."""
    code = """
        from torch.utils.data import DataLoader, Dataset

        class Seen(Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, index):
                import torch_straggler
                threads = len(os.listdir("/proc/self/task"))
                return torch.tensor([float(torch_straggler.report() is None), float(threads)])

        init()
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        loader = DataLoader(Seen(), batch_size=2, num_workers=2)
        reports, threads, descriptors = set(), set(), []
        for cycle in range(50):
            works = [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(100)]  # while the workers are forked
            for batch in loader:
                model(batch).sum().backward()
                reports |= set(batch[:, 0].tolist())
                threads |= set(batch[:, 1].tolist())
            for work in works:
                work.wait()
            descriptors.append(len(os.listdir("/proc/self/fd")))
        tell(reports=list(reports), threads=list(threads), descriptors=descriptors)
        dist.destroy_process_group()
        """
    done = job(code, seconds=100).succeeded()
    for told in done.told:
        assert told["reports"] == [1.0]  # no session in a worker
        assert max(told["threads"]) <= 2  # its own and its queue's
        assert min(told["descriptors"][-10:]) == min(told["descriptors"][:10])  # those of workers come and go
    assert done.report["steps"] > 80
    assert done.report["collectives"] == sum(len(done.operations(rank)) for rank in range(2)) > 2 * 50 * 100
