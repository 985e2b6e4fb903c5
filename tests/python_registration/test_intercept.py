"""Scripts that say `gloo` themselves, however they are started."""

from collections.abc import Callable
from pathlib import Path

import pytest
from python_process import Run

# Says what each rank got; starts children of its own with --spawn.
SCRIPT = r"""
import sys
import torch
import torch.distributed as dist

def work(rank=None, world=None, port=None):
    where = {} if rank is None else dict(init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    dist.init_process_group("gloo", **where)
    ones = torch.ones(1)
    dist.all_reduce(ones)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    arguments = [argument for argument in sys.argv[1:] if argument != "--spawn"]
    said = [dist.get_backend(), type(backend).__name__, str(int(ones.item())), *arguments]
    sys.stdout.write(" ".join(said) + "\n")  # one write: the ranks share the pipe
    sys.stdout.flush()
    dist.destroy_process_group()

if __name__ == "__main__":
    if "--spawn" in sys.argv:
        store = dist.TCPStore("127.0.0.1", 0, 1, is_master=True, wait_for_workers=False)
        port = store.port
        del store
        torch.multiprocessing.spawn(work, (2, port), nprocs=2)
    else:
        work()
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_straggler_run_wraps_each_rank_and_passes_arguments_on(command: Run, script: str) -> None:
    done = command("straggler", "run", "--nproc-per-node=2", script, "--inject", "is", "the script's")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["gloo StragglerBackend 2 --inject is the script's"] * 2


def test_straggler_run_keeps_an_intercept_that_the_user_set(command: Run, script: str) -> None:
    done = command("straggler", "run", "--nproc-per-node=2", script, STRAGGLER_INTERCEPT="nccl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["gloo ProcessGroupGloo 2"] * 2


def test_children_of_mp_spawn_are_wrapped(command: Run, script: str) -> None:
    done = command("python", script, "--spawn", STRAGGLER_INTERCEPT="gloo,nccl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["gloo StragglerBackend 2"] * 2


@pytest.mark.parametrize(
    "launcher",
    [
        "torchrun --nproc-per-node=2",
        # Without a GPU, --multi_gpu is how accelerate starts several processes: by torchrun's code.
        "accelerate launch --multi_gpu --num_processes=2 --num_machines=1 --mixed_precision=no --dynamo_backend=no "
        "--main_process_port=0",
    ],
    ids=["torchrun", "accelerate"],
)
def test_other_launchers_wrap_with_the_environment_variable(launcher: str, command: Run, script: str) -> None:
    if launcher.startswith("accelerate"):
        pytest.importorskip("accelerate", reason="accelerate is not installed; pip install accelerate")
    done = command(*launcher.split(), script, STRAGGLER_INTERCEPT="gloo,nccl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["gloo StragglerBackend 2"] * 2


def test_plain_python_is_wrapped(command: Run, script: str) -> None:
    rendezvous = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    done = command("python", script, STRAGGLER_INTERCEPT="gloo", **rendezvous)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["gloo StragglerBackend 1"]


def test_a_failed_rank_gives_torchruns_own_exit_status(command: Run, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("raise SystemExit(3)")
    ours = command("straggler", "run", "--nproc-per-node=2", "fails.py")
    theirs = command("torchrun", "--nproc-per-node=2", "fails.py")
    assert ours.returncode == theirs.returncode != 0
    assert "ChildFailedError" in ours.stderr


def test_in_the_process_it_can_be_repeated_and_wraps_once(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        import torch_straggler
        torch_straggler.intercept("gloo", "nccl")
        torch_straggler.intercept("gloo")
        print(*(dist.Backend.backend_type_map[name].name for name in ("gloo", "nccl")))
        print(dist.Backend.backend_capability["gloo"], dist.Backend.default_device_backend_map["cpu"])
        for name in ("gloo", "cpu:gloo", "straggler_gloo", None):
            init(name)
            dist.all_reduce(torch.ones(1))
            print(type(backend_of()).__name__, type(backend_of().inner).__name__)
            dist.destroy_process_group()
        """
    )
    assert output.splitlines() == ["CUSTOM NCCL", "['cpu', 'cuda'] gloo"] + ["StragglerBackend ProcessGroupGloo"] * 4


def test_ddp_trains_under_the_name_gloo(succeeds: Callable[..., str]) -> None:
    output = succeeds(
        """
        init("gloo")
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        model(torch.ones(1, 2)).sum().backward()
        print(model.module.weight.grad.tolist())
        dist.destroy_process_group()
        """,
        STRAGGLER_INTERCEPT="gloo",
    )
    assert output == "[[1.0, 1.0]]\n"


@pytest.mark.parametrize("names", [("mpi",), ("gloo", "GLOO"), ()])
def test_a_name_that_is_not_allowed_is_refused_and_nothing_is_changed(names: tuple[str, ...], python: Run) -> None:
    done = python(
        f"""
        import torch_straggler, torch.distributed as dist
        try:
            torch_straggler.intercept(*{names!r})
        except ValueError as error:
            print(error)
        print(dist.Backend.backend_type_map["gloo"].name)
        """
    )
    message, kind = done.stdout.splitlines()
    assert message.endswith("allowed: gloo, nccl")
    assert kind == "GLOO"
