"""How jobs end that have DDP with the PowerSGD hook and several small buckets: on bare gloo, and through the wrapper.

    .venv/bin/python tests/features/powersgd_buckets.py [JOBS [MEGABYTES]]

JOBS of each (20), in turn, with buckets of MEGABYTES (0.001: several; 25: one, with which all come to their end). Two
ranks a job, forked from this process, which has imported all that they need.
"""

import faulthandler
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
import torch._dynamo  # DDP does so at its first construction, which takes seconds
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).parent / "scripts"))
from model import small_model, train

LIMIT = 20  # seconds a job; it needs one
# Callbacks of the hook that make a collective and wait for it.
CALLBACKS = ("unpack_uncompressed_tensors_and_allreduce_ps", "compute_qs")


def rank_main(backend: str, megabytes: float, rank: int, port: int, said: Path) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT, 0o600), 2)
    faulthandler.dump_traceback_later(LIMIT - 1, file=2)
    torch.set_num_threads(1)
    dist.init_process_group(backend, init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model = DistributedDataParallel(small_model(), bucket_cap_mb=megabytes)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    train(model, steps=20)
    dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def how_it_ends(backend: str, megabytes: float, folder: Path) -> str:
    port, said = free_port(), [folder / str(rank) for rank in range(2)]
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=rank_main, args=(backend, megabytes, rank, port, said[rank])) for rank in range(2)]
    for rank in ranks:
        rank.start()
    deadline = time.monotonic() + LIMIT
    for rank in ranks:
        rank.join(max(0.0, deadline - time.monotonic()))
    codes = [rank.exitcode for rank in ranks]
    for rank in ranks:
        rank.kill()
        rank.join()
    text = "".join(file.read_text() for file in said)
    if codes == [0, 0]:
        return "came to its end"
    if "collective mismatch" in text:
        return "mismatch"
    if codes == [None, None] and any(name in text for name in CALLBACKS):
        return "deadlock: callbacks wait"
    return f"exit codes {codes}: {text[-500:]}"


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    megabytes = float(sys.argv[2]) if len(sys.argv) > 2 else 0.001
    ends: Counter[tuple[str, str]] = Counter()
    for _ in range(jobs):
        for backend in ("gloo", "straggler_gloo"):
            with tempfile.TemporaryDirectory() as folder:
                ends[backend, how_it_ends(backend, megabytes, Path(folder))] += 1
    for (backend, end), number in sorted(ends.items()):
        print(f"{backend}: {number} of {jobs}: {end}")


if __name__ == "__main__":
    main()
