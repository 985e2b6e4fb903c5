"""Settings that are wrong are refused at start; where mitigation cannot be it says so; what is owed can be saved."""

from collections.abc import Callable

from ranks import Job

SETTINGS = """
launcher = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), is_master=False)

def init(name):
    dist.init_process_group(BACKEND, store=dist.PrefixStore(name, launcher), rank=RANK, world_size=WORLD)

wrong = {
    "STRAGGLER_MITIGATE": ["on", "CARRY", "", "carry,drop"],
    "STRAGGLER_STALENESS": ["0", "-1", "1025", "eight", "1.5", ""],
    "STRAGGLER_GRACE_MS": ["-1", "-0.5", "fast", "nan", "inf", ""],
    "STRAGGLER_QUORUM": ["0", "3", "-1", "1.5", "half", "", "-0.5", "nan"],
}
said = {}
for name, values in wrong.items():
    for value in values:
        os.environ["STRAGGLER_MITIGATE"] = "carry"
        os.environ[name] = value
        try:
            init(f"{name}={value}")
            said[f"{name}={value}"] = "accepted"
            dist.destroy_process_group()
        except ValueError as error:
            said[f"{name}={value}"] = str(error)
        del os.environ[name]
right = []
allowed = [
    {"STRAGGLER_MITIGATE": "off"},
    {"STRAGGLER_MITIGATE": "drop", "STRAGGLER_STALENESS": "1", "STRAGGLER_GRACE_MS": "auto", "STRAGGLER_QUORUM": "1"},
    {"STRAGGLER_STALENESS": "1024", "STRAGGLER_GRACE_MS": "0", "STRAGGLER_QUORUM": "2"},
    {"STRAGGLER_GRACE_MS": "2.5", "STRAGGLER_QUORUM": "0.75"},
]
for settings in allowed:
    os.environ |= {"STRAGGLER_MITIGATE": "carry", **settings}
    init(str(settings))
    ones = torch.ones(2)
    dist.all_reduce(ones)
    right.append(ones.tolist())
    dist.destroy_process_group()
    for name in settings:
        del os.environ[name]
tell(said=said, right=right)
"""


def test_settings_that_are_wrong_are_refused_with_what_is_allowed(job: Callable[..., Job]) -> None:
    """Two ranks: a quorum of 3 is above the world size. With what is allowed, all works."""
    done = job(SETTINGS, 2, seconds=90).succeeded()
    for told in done.told:
        assert told["right"] == [[2, 2]] * 4
        assert len(told["said"]) == 24
        for name, text in told["said"].items():
            setting, _, value = name.partition("=")
            assert setting in text, (name, text)
            assert "allowed" in text, (name, text)
            assert value in text, (name, text)
        assert "off" in told["said"]["STRAGGLER_MITIGATE=on"] and "drop" in told["said"]["STRAGGLER_MITIGATE=on"]
        assert "1024" in told["said"]["STRAGGLER_STALENESS=0"]
        assert "2" in told["said"]["STRAGGLER_QUORUM=3"]
        assert "auto" in told["said"]["STRAGGLER_GRACE_MS=-1"]


NOT_ARMED = """
os.environ |= {"STRAGGLER_MITIGATE": "carry", "STRAGGLER_GRACE_MS": "5"}
import warnings
warnings.simplefilter("ignore")
import torch_straggler

def train(ddp, between=lambda number: None):
    for number in range(40):
        between(number)
        ddp.zero_grad()
        time.sleep(0.05 if RANK == 1 and number > 20 and number % 4 == 0 else 0)
        ddp(torch.ones(2, 8)).sum().backward()

def model(**options):
    torch.manual_seed(0)
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4), **options)

def point_to_point(number):
    if number == 5:
        ones = torch.ones(1)
        dist.send(ones, 1) if RANK == 0 else dist.recv(ones, 0) if RANK == 1 else None

def with_subgroup():
    train(model(process_group=dist.new_group()))

def sharded():
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.device_mesh import init_device_mesh
    torch.manual_seed(0)
    train(fully_shard(torch.nn.Linear(8, 4), mesh=init_device_mesh("cpu", (WORLD,))))

def with_zero():
    from torch.distributed.optim import ZeroRedundancyOptimizer
    ddp = model()
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.SGD, lr=0.1)
    train(ddp, lambda number: number and optimizer.step())

def with_hook():
    ddp = model()
    ddp.register_comm_hook(None, lambda state, bucket: dist.all_reduce(bucket.buffer(), async_op=True).get_future()
                           .then(lambda future: future.value()[0]))
    train(ddp)

programs = {
    "point to point": lambda: train(model(), point_to_point),
    "sub-group": with_subgroup,
    "FSDP": sharded,
    "ZeRO": with_zero,
    "comm hook": with_hook,
}
found = {}
for name, program in programs.items():
    init(timeout=timedelta(seconds=20))
    program()
    ledger = torch_straggler.ledger()
    found[name] = [ledger.armed, ledger.reason, ledger.filled_by_proxy]
    dist.destroy_process_group()
os.environ["STRAGGLER_MITIGATE"] = "off"
init()
tell(found=found, off=torch_straggler.ledger() is None, state=None)
dist.destroy_process_group()
"""


def test_what_is_not_supported_is_not_armed_and_a_line_says_why(job: Callable[..., Job]) -> None:
    """In the ledger too; and nothing was filled. A job without DDP on the default group is told so in its report."""
    done = job(NOT_ARMED, 3, seconds=90).succeeded()
    for rank in done.ranks:
        assert rank.told["off"]
        for name, (armed, reason, filled) in rank.told["found"].items():
            assert filled == 0, name
            if rank.number == 2 and name in ("point to point", "ZeRO"):
                continue  # it has sent nothing, and is the root of none of ZeRO's broadcasts
            assert not armed and reason, (name, reason)
            assert any("itigation" in line and reason in line for line in done_lines(done)), (name, reason)


def done_lines(job: Job) -> list[str]:
    return [line for rank in job.ranks for line in rank.stderr.splitlines()]


CHECKPOINT = """
os.environ |= {"STRAGGLER_MITIGATE": "carry", "STRAGGLER_GRACE_MS": "5"}
import warnings
warnings.simplefilter("ignore")
import torch_straggler

def train(steps, begin, late):
    torch.manual_seed(0)
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4, bias=False))
    total = torch.zeros(4, 8)
    for number in range(steps):
        ddp.zero_grad()
        time.sleep(0.3 if RANK == 1 and number in late else 0)
        ddp(torch.full((1, 8), float((begin + number) % 5 + RANK))).sum().backward()
        total += ddp.module.weight.grad
    return total

def refusal(state):
    try:
        torch_straggler.load_state_dict(state)
        return "accepted"
    except ValueError as error:
        return str(error)

init(timeout=timedelta(seconds=20))
first = train(40, 0, (39,))
state = torch_straggler.state_dict()
path = os.path.join(os.environ["TEST_JOB"], f"checkpoint{RANK}.pt")
torch.save(state, path)
owed = {bucket: residual.tolist() for bucket, residual in state["residuals"].items()}
dist.barrier()
dist.destroy_process_group()

init(timeout=timedelta(seconds=20))
wrong = {name: refusal({**state, **change}) for name, change in {
    "rank": {"rank": RANK + 1}, "world size": {"world_size": WORLD + 1}, "mode": {"mode": "drop"},
    "version": {"version": 2}}.items()}
torch_straggler.load_state_dict(torch.load(path))
second = train(30, 40, ())
torch_straggler.flush()
last = train(1, 70, ())
after = torch_straggler.state_dict()["residuals"]
tell(first=first.tolist(), second=(second + last).tolist(), owed=owed, after=len(after), wrong=wrong)
dist.destroy_process_group()
"""


def test_what_is_owed_survives_a_checkpoint(job: Callable[..., Job]) -> None:
    """Saved with rank 1 behind, loaded in another group: applied in both runs together is what was brought in both.

    A state of another rank, world size or mode is refused.
    """
    done = job(CHECKPOINT, 4, seconds=60).succeeded()
    brought = sum((number % 5 + rank) / 4 for number in range(71) for rank in range(4))
    for told in done.told:
        applied = [
            [a + b for a, b in zip(x, y, strict=True)] for x, y in zip(told["first"], told["second"], strict=True)
        ]
        assert applied == [[brought] * 8] * 4
        assert told["after"] == 0
        for name, text in told["wrong"].items():
            assert text != "accepted", name
    assert done.told[1]["owed"], "rank 1 owed nothing: the checkpoint shows nothing"
