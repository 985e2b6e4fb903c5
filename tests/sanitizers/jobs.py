"""What real ranks do under a sanitizer: a job a name, each the script of a rank for `ranks.run_ranks`.

Together they go through what threads of ours and of torch's do at the same time: callbacks of Futures, the poller, the
monitor and the collector against collectives of several threads, groups that come and go, forks, ends of every kind.
Each ends with 0 on all ranks.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Script:
    ranks: int
    code: str
    settings: dict[str, str] = field(default_factory=dict)
    sanitizers: tuple[str, ...] = ("asan", "tsan")


TRAINING = """
import logging, threading, torch_straggler
logging.basicConfig(level=logging.INFO)
init()
torch.manual_seed(1)
layers = [torch.nn.Linear(64, 64) for _ in range(4)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.02)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
running, seen = True, []

def look():
    while running:
        seen.append(torch_straggler.report())
        time.sleep(0.02)

looker = threading.Thread(target=look)
looker.start()
for step in range(60):
    if RANK == 1 and step > 10:
        time.sleep(0.01)
    optimizer.zero_grad()
    model(torch.randn(8, 64)).sum().backward()
    optimizer.step()
running = False
looker.join()
assert RANK > 0 or any(seen)
dist.destroy_process_group()
assert RANK > 0 or torch_straggler.report().steps > 0
"""

# Late ranks whose slots are filled, in buckets and broadcasts, while another thread looks at the ledger.
MITIGATION = """
import threading, torch_straggler
init()
torch.manual_seed(1)
layers = [torch.nn.Linear(64, 64) for _ in range(4)]
layers.append(torch.nn.BatchNorm1d(64))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.02)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
running = True

def look():
    while running:
        torch_straggler.ledger()
        torch_straggler.state_dict()
        time.sleep(0.02)

looker = threading.Thread(target=look)
looker.start()
def train():
    for step in range(80):
        if step > 25 and step % 7 == RANK:
            time.sleep(0.15)
        if step == 79:
            torch_straggler.flush()
        optimizer.zero_grad()
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()
    filled = torch.tensor([torch_straggler.ledger().filled_by_proxy])
    dist.all_reduce(filled)
    return filled.item()

# With a slow name server a client of the store takes 5 s to connect: until then no message gets through.
assert any(train() for _ in range(10))
running = False
looker.join()
assert all(row.pending == 0 for row in torch_straggler.ledger().buckets)
dist.destroy_process_group()
"""

# Works that are waited for, here and in another thread, polled, chained to, and dropped.
WORKS = """
import gc, threading
init()
for round in range(10):
    works = [dist.all_reduce(torch.ones(64), async_op=True) for _ in range(30)]
    del works[::3]
    works.append(dist.all_gather([torch.zeros(8) for _ in range(WORLD)], torch.ones(8), async_op=True))
    works.append(dist.reduce_scatter_tensor(torch.zeros(8), torch.ones(8 * WORLD), async_op=True))
    works.append(dist.broadcast(torch.ones(8), 0, async_op=True))
    chained = [work.get_future().then(lambda future: future.value()) for work in works[:5]]
    waiter = threading.Thread(target=lambda: [work.wait() for work in works[::2]])
    waiter.start()
    for work in works[1::2]:
        work.is_completed()
        work.wait()
    waiter.join()
    for future in chained:
        future.wait()
    del works, chained
    gc.collect()
dist.destroy_process_group()
"""

GROUPS = """
import threading
from torch.distributed.device_mesh import init_device_mesh
init()
for round in range(5):
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    every = [dist.new_group() for _ in range(3)]
    def use(group):
        for _ in range(30):
            dist.all_reduce(torch.ones(16), group=group)
    threads = [threading.Thread(target=use, args=(group,)) for group in every]
    for thread in threads:
        thread.start()
    use(pairs[RANK // 2])
    for thread in threads:
        thread.join()
    for group in [pairs[RANK // 2], *every]:
        dist.destroy_process_group(group)
mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
for name in ("a", "b"):
    dist.all_reduce(torch.ones(4), group=mesh[name].get_group())
dist.barrier()
dist.destroy_process_group()
"""

SHARDED = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
init()
model = torch.nn.Sequential(*[torch.nn.Linear(32, 32) for _ in range(3)])
mesh = init_device_mesh("cpu", (WORLD,))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(15):
    model(torch.randn(4, 32)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
"""

POINT_TO_POINT = """
init()
following, before = (RANK + 1) % WORLD, (RANK - 1) % WORLD
for round in range(30):
    there, here = torch.full((1000,), float(RANK)), torch.zeros(1000)
    operations = [dist.P2POp(dist.irecv, here, before), dist.P2POp(dist.isend, there, following)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert here[0] == before
    if RANK == 0:
        dist.send(there, 1)
    elif RANK == 1:
        dist.recv(here)
    objects = [None] * WORLD
    dist.all_gather_object(objects, {"rank": RANK})
dist.destroy_process_group()
"""

FORKS = """
import torch_straggler
init()
for cycle in range(20):
    works = [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(50)]
    child = os.fork()
    if child == 0:
        alone = torch_straggler.report() is None
        del works
        os._exit(0 if alone else 1)
    for work in works:
        work.wait()
    assert os.waitpid(child, 0)[1] == 0
dist.destroy_process_group()
"""

WORKERS = """
import torch_straggler
from torch.utils.data import DataLoader, Dataset

class Seen(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.tensor([float(torch_straggler.report() is None), 1.0])

init()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
for cycle in range(5):
    works = [dist.all_reduce(torch.ones(8), async_op=True) for _ in range(100)]
    for batch in DataLoader(Seen(), batch_size=2, num_workers=2):
        assert batch.min() == 1
        model(batch).sum().backward()
    for work in works:
        work.wait()
dist.destroy_process_group()
"""

# Rounds on stores of each kind; rank 0, which serves some of them, leaves first or last.
ROUNDS = """
for number in range(8):
    servers = (lambda: store_of_round("rank0"), store_of_round, lambda: dist.FileStore(f"store{number}", WORLD))
    dist.init_process_group(BACKEND, store=servers[number % 3](), rank=RANK, world_size=WORLD)
    for _ in range(20):
        dist.all_reduce(torch.ones(2))
    time.sleep(0.3 * ((RANK + number) % 2))
    dist.destroy_process_group()
"""

WITHOUT_DESTROY = """
import threading
init()
for _ in range(20):
    dist.all_reduce(torch.ones(2))
left = [dist.all_reduce(torch.ones(2), async_op=True) for _ in range(20)]
group = dist.new_group()
dist.all_reduce(torch.ones(2), group=group)
threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
"""

# A rank that stays away, an abort from another thread, a handler that raises, delays before collectives.
FAILURES = """
import logging, threading

class Raising(logging.Handler):
    def emit(self, record):
        raise ValueError(record)

logging.getLogger().addHandler(Raising())
logging.raiseExceptions = False
init()
for _ in range(20):
    dist.all_reduce(torch.ones(2))
group = dist.new_group(timeout=timedelta(seconds=5))  # to connect in, too
if RANK == 0:
    try:
        dist.all_reduce(torch.ones(2), group=group)
        raise SystemExit("a collective that nobody joined came to an end")
    except RuntimeError:
        pass
else:
    time.sleep(7)
aborted = dist.new_group()
if RANK == 0:
    threading.Timer(0.5, backend_of(aborted).abort).start()
    try:
        dist.all_reduce(torch.ones(2), group=aborted)
    except RuntimeError:
        pass
else:
    time.sleep(2)
dist.destroy_process_group()
"""

REPORT = """
from torch_straggler import cli
init()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
for _ in range(40):
    model(torch.randn(2, 8)).sum().backward()
dist.destroy_process_group()
if RANK == 0:
    assert cli.main(["report", os.environ["STRAGGLER_DIR"]]) == 0
    assert cli.main(["report", os.environ["STRAGGLER_DIR"], "--json"]) == 0
"""

JOBS = {
    "training with a report in between": Script(3, TRAINING),
    "late ranks, carried": Script(3, MITIGATION, {"STRAGGLER_MITIGATE": "carry", "STRAGGLER_GRACE_MS": "5"}),
    "late ranks, dropped": Script(3, MITIGATION, {"STRAGGLER_MITIGATE": "drop", "STRAGGLER_GRACE_MS": "5"}),
    "works waited for and dropped": Script(2, WORKS),
    "groups of several threads": Script(4, GROUPS),
    "FSDP2": Script(2, SHARDED),
    "point to point": Script(3, POINT_TO_POINT),
    "children forked amid operations": Script(2, FORKS),
    # ThreadSanitizer dies where a forked child of several threads starts one: its thread may have the id of a parent's.
    "workers of a DataLoader": Script(2, WORKERS, sanitizers=("asan",)),
    "eight rounds on three kinds of store": Script(2, ROUNDS),
    "no destroy": Script(2, WITHOUT_DESTROY),
    "a timeout, an abort, a handler that raises": Script(
        2, FAILURES, {"STRAGGLER_INJECT": "rank=1,where=collective,ms=2,from=0"}
    ),
    "a report from records": Script(2, REPORT, {"STRAGGLER_RULE": "median"}),
}
