"""The features of torch, and of others, that have to work through the wrapper as they do without: one script each.

A script says `gloo` and knows nothing of us.
"""

import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "scripts"
OF_ACCELERATE = Path(sysconfig.get_path("purelib"), "accelerate", "test_utils", "scripts")


@dataclass(frozen=True)
class Feature:
    """A row of FEATURES.md, and how it is found out."""

    title: str
    script: Path
    ranks: int = 2
    quick: bool = False  # in `make test`, one of each kind; else in others.sh only
    arguments: tuple[str, ...] = ()  # of the script
    options: tuple[str, ...] = ()  # of torchrun
    settings: Mapping[str, str] = field(default_factory=dict)  # environment variables
    needs: str = ""  # a package that only others.sh installs
    works: str = "as on gloo"  # what is said where output and exit code are gloo's
    said: str = ""  # what we say of it, once; else nothing
    elsewhere: tuple[str, ...] = ()  # tests of the same that were there before

    @property
    def id(self) -> str:
        return "_".join((self.script.stem.replace("test_", "accelerate_"), *self.arguments))


SAME = ("multi_rank/test_same_results.py::test_results_are_those_of_gloo",)
GROUPS = ("multi_rank/test_groups.py::test_both_dimensions_of_a_mesh_subgroups_and_splits_are_wrapped_and_right",)
LAUNCH = ("python_registration/test_intercept.py::test_other_launchers_wrap_with_the_environment_variable",)


def _script(title: str, name: str, **options: Any) -> Feature:
    return Feature(title, SCRIPTS / f"{name}.py", **options)


def _accelerate(name: str) -> Feature:
    settings = {"ACCELERATE_USE_CPU": "true"}
    return Feature(f"accelerate's own `{name}`", OF_ACCELERATE / name, settings=settings, elsewhere=LAUNCH)


FEATURES = (
    _script("object collectives", "object_collectives", elsewhere=SAME),
    _script("batched point to point", "batched_point_to_point", elsewhere=SAME),
    _script(
        "`monitored_barrier`",
        "monitored_barrier",
        elsewhere=("multi_rank/test_timeouts.py::test_what_is_not_joined_raises_what_gloo_raises",),
    ),
    _script("`new_group`, with its options; `new_subgroups`", "new_group", ranks=4, elsewhere=GROUPS),
    _script("`split_group`", "split_group", ranks=4, elsewhere=GROUPS),
    _script("functional collectives, and those with gradients", "functional_collectives", elsewhere=SAME),
    _script("DDP with communication hooks, built in and in Python", "ddp_comm_hooks", elsewhere=SAME),
    _script("ZeroRedundancyOptimizer", "zero_redundancy_optimizer", elsewhere=SAME),
    _script("ZeroRedundancyOptimizer that overlaps with DDP", "zero_overlap", works="refused, as on gloo"),
    _script("`Join`", "join", elsewhere=SAME),
    _script("FSDP1", "fsdp1", elsewhere=SAME),
    _script("FSDP2", "fsdp2", quick=True, elsewhere=SAME),
    _script("HSDP", "hsdp", ranks=4),
    _script("DTensor", "dtensor", quick=True),
    _script("DeviceMesh of one and two dimensions, sub-meshes", "device_mesh", ranks=4, elsewhere=GROUPS),
    _script("tensor parallel", "tensor_parallel"),
    _script("pipelining", "pipelining", quick=True),
    _script(
        "`torch.compile` of DDP and of collectives: aot_eager",
        "compiled",
        arguments=("aot_eager",),
        elsewhere=SAME,
    ),
    _script("`torch.compile` of DDP and of collectives: inductor", "compiled", arguments=("inductor",)),
    _script("torch.distributed.checkpoint: save and load", "checkpoint"),
    _script("torch.distributed.checkpoint: asynchronous save", "checkpoint_async", quick=True),
    _script("RPC beside the group", "rpc", quick=True),
    _script(
        "`TORCH_DISTRIBUTED_DEBUG=DETAIL`",
        "debug_detail",
        quick=True,
        settings={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
        works="as on gloo; a line says that times are distorted",
        said="straggler: rank 0: TORCH_DISTRIBUTED_DEBUG=DETAIL",
        elsewhere=("multi_rank/test_groups.py::test_under_torchs_debug_mode_a_mismatch_is_found_as_on_gloo",),
    ),
    _script(
        "`torchrun --max-restarts`",
        "max_restarts",
        quick=True,
        options=("--max-restarts=1",),
        # Else torch's second attempt finds gloo's addresses of the first, on one host.
        settings={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
    ),
    _accelerate("test_script.py"),
    _accelerate("test_sync.py"),
    _script("accelerate's own `test_ops.py`", "accelerate_ops", elsewhere=LAUNCH),
    _script("Lightning's DDP strategy", "lightning_ddp", needs="lightning"),
    _script("Lightning's FSDP strategy, on CPU", "lightning_fsdp", needs="lightning"),
    _script("a Hugging Face Trainer", "hugging_face_trainer", needs="transformers"),
)
