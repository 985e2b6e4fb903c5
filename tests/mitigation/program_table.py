"""The programs of the closed form, by the number of ranks that they run on."""

from dataclasses import replace
from typing import Any

from programs import Program

VIEWS = {"bucket_cap_mb": 1e-6, "gradient_as_bucket_view": True}
IN_EVERY_STEP = "in every step"

PROGRAMS = (
    Program("plain", "one model, staleness 8"),
    Program("plain_3", "one model, staleness 3", staleness=3, seed=2),
    Program("one_bucket", "all parameters in one bucket", ddp={}, seed=3),
    Program("views_none", "gradients are views of the buckets; set_to_none", ddp=VIEWS, seed=4, staleness=3),
    Program("views_zero", "gradients are views of the buckets; zeroed", ddp=VIEWS, set_to_none=False, seed=5),
    Program("zeroed", "gradients are zeroed", set_to_none=False, seed=6, staleness=3),
    Program("two_models", "two equal DDP models", models=2, seed=7),
    Program("two_models_3", "two equal DDP models, staleness 3", models=2, seed=8, staleness=3, ddp=VIEWS),
    Program("reentrant", "reentrant checkpointing", forward="reentrant", seed=9),
    Program("not_reentrant", "checkpointing that is not reentrant", forward="not reentrant", seed=10, staleness=3),
    Program("nn", "torch.distributed.nn in one step of four", forward="nn.all_reduce", every=4, seed=11),
    Program(
        "nn_always",
        "torch.distributed.nn in every step",
        forward="nn.all_reduce",
        seed=12,
        stands_down=IN_EVERY_STEP,
        armed_at_first=True,
    ),
    Program("functional", "functional all_reduce in one backward of four", forward="functional", every=4, seed=13),
    Program(
        "gathered",
        "functional all_gather with a gradient, from step 28 on",
        forward="gathered",
        every=28,
        seed=14,
        stands_down="backward",
        armed_at_first=True,
    ),
    Program("tensor_parallel", "all_reduce in one backward of four", forward="tensor parallel", every=4, seed=15),
    Program(
        "tensor_parallel_always",
        "all_reduce in every backward",
        forward="tensor parallel",
        seed=16,
        stands_down=IN_EVERY_STEP,
        armed_at_first=True,
    ),
    Program(
        "unused",
        "unused parameters that differ by rank and step",
        unused=True,
        ddp={"bucket_cap_mb": 1e-6, "find_unused_parameters": True},
        seed=17,
        stands_down="backward",
    ),
    Program("static_graph", "static graph", ddp={"bucket_cap_mb": 1e-6, "static_graph": True}, seed=18),
    Program("no_sync", "three batches, two in no_sync", micro=3, seed=19),
    Program("no_sync_views", "the same, with views", micro=3, ddp=VIEWS, seed=20, staleness=3),
    Program("join", "Join, rank 1 has 3 batches less", join=True, fewer=3, seed=21, stands_down="Join"),
    Program(
        "join_effective",
        "Join that divides by those that take part",
        join=True,
        fewer=3,
        effective=True,
        seed=43,
        stands_down="Join",
    ),
    Program(
        "loss",
        "the loss is reduced in every step",
        reduces_loss=True,
        seed=22,
        stands_down=IN_EVERY_STEP,
        armed_at_first=True,
    ),
    Program("clipping", "gradients are clipped", clip=True, seed=23),
    Program("scaler", "GradScaler, scale grows every 4 steps", scaler=True, seed=24),
    Program("scaler_3", "the same, staleness 3", scaler=True, seed=25, staleness=3, ddp=VIEWS),
    Program("fp16", "fp16 hook", hook="fp16_compress_hook", seed=26, stands_down="hook"),
    Program("bf16", "bf16 hook", hook="bf16_compress_hook", largest=2, seed=27, stands_down="hook"),
    Program("fp16_no_sync", "fp16 hook, no_sync", hook="fp16_compress_hook", micro=2, seed=44, stands_down="hook"),
    Program("stops", "rank 0 ends it by a broadcast flag", stops_at=43, steps=70, seed=28),
    Program("evaluates", "rank 0 evaluates", evaluates=True, late=(0,), often=0.0, seed=29),
    Program("coordinator", "the coordinator's rank is late", late=(0,), seed=30),
    Program("coordinator_3", "the coordinator's rank and another", late=(0, 2), seed=31, staleness=3),
    Program("momentum", "momentum", optimizer="momentum", seed=32),
    Program("adamw", "AdamW", optimizer="adamw", seed=33),
    Program("batch_norm", "BatchNorm", batch_norm=True, seed=34, left_alone=(0,)),
    Program("world_2", "2 ranks", ranks=2, late=(1,), seed=35, settings={"STRAGGLER_QUORUM": "1"}),
    Program("world_2_first", "2 ranks, rank 0 is late", ranks=2, late=(0,), seed=36, staleness=3),
    Program("world_3", "3 ranks", ranks=3, late=(2,), seed=37),
    Program("world_8", "8 ranks", ranks=8, late=(1, 5, 6), seed=38, often=0.1),
    Program(
        "alone", "all but one are late", late=(1, 2, 3), together=True, seed=45, settings={"STRAGGLER_QUORUM": "1"}
    ),
    Program(
        "alone_drop",
        "drop, all but one are late",
        mode="drop",
        late=(0, 1, 2),
        together=True,
        seed=46,
        settings={"STRAGGLER_QUORUM": "1"},
    ),
    Program("drop", "drop", mode="drop", seed=39),
    Program("drop_3", "drop, staleness 3", mode="drop", staleness=3, late=(0, 2), seed=40),
    Program("drop_two_models", "drop, two equal DDP models", mode="drop", models=2, seed=41),
)
# Floats, whose bits tell in which order they were added.
FLOATS = (
    Program("floats", "floats, momentum", floats=True, optimizer="momentum", seed=50),
    Program("floats_3", "floats, staleness 3", floats=True, staleness=3, seed=51, late=(0, 2), often=0.3),
    Program("floats_views", "floats, two models", floats=True, models=2, ddp=VIEWS, seed=52),
)


def recorded(name: str, title: str, **options: Any) -> tuple[Program, Program]:
    """A run, and its repetition with other stalls."""
    force = {"STRAGGLER_FORCE_PARTICIPATION": f"{{folder}}/{name}"}
    forced = {"stalls": 1, "late": (0, 2), "settings": force}
    return Program(name, title, **options), Program(f"{name}_forced", f"{title}, forced", **{**options, **forced})


FORCED = (
    *recorded("recorded", "carry", floats=True, optimizer="momentum", seed=60),
    *recorded("recorded_drop", "drop", floats=True, mode="drop", staleness=3, seed=61),
)
# Of chaos.py: all ranks are late, for up to 20 ms unless it is asked for more, and control messages are lost.
POISONED = 97  # each such step one rank has a gradient that is not finite


def chaotic(name: str, title: str, **options: Any) -> Program:
    stalls = {"late": (0, 1, 2, 3), "often": 0.03, "stall_ms": (1, 20)}
    return Program(name, title, **{**stalls, **options})


CHAOS = (
    chaotic("chaos_momentum", "SGD with momentum", optimizer="momentum", seed=70),
    chaotic("chaos_adamw", "AdamW", optimizer="adamw", seed=71, staleness=3),
    chaotic("chaos_scaler", "GradScaler that skips steps", scaler=True, seed=72, heads=((3, 5, True), (1, 1, False))),
    chaotic("chaos_accumulation", "accumulation", micro=2, seed=73),
    chaotic("chaos_clipping", "clipping", clip=True, seed=74, ddp=VIEWS, staleness=3),
    chaotic("chaos_batch_norm", "BatchNorm", batch_norm=True, seed=75),
)


def of_steps(program: Program, steps: int, stall_ms: float) -> Program:
    poisoned = tuple((step // POISONED % program.ranks, step) for step in range(40, steps, POISONED))
    low = program.stall_ms[0]
    return replace(program, steps=steps, stall_ms=(low, stall_ms), poisoned=poisoned if program.scaler else ())


BY_NAME = {program.name: program for program in (*PROGRAMS, *FLOATS, *FORCED, *CHAOS)}
