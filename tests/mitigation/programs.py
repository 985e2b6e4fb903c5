"""Training programs whose gradients are known beforehand: the ranks' half of the tests of right results.

Each program is a DDP script whose loss is linear in its parameters. So a gradient depends on rank and step alone, not
on what was applied before it: the sum that must have been applied is known without running anything (closed_form.py).
Inputs are small integers and learning rates powers of two: every sum is exact in float32, whatever its order.

Unless a program says otherwise each parameter is a bucket of its own, of a size that no other has: what is owed is told
apart by its size.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import time
import warnings
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.nn.functional as with_autograd
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

ARMED = 20  # steps after which it must be armed; no rank is late before
BATCH = 2
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Program:
    """One training program and what must become of it."""

    name: str
    title: str
    ranks: int = 4
    steps: int = 48  # synchronised backwards, before the one after the flush
    heads: tuple[tuple[int, int, bool], ...] = ((3, 5, True), (2, 11, False))  # inputs, outputs, has a bias
    largest: int = 3  # of inputs and targets
    models: int = 1
    ddp: dict[str, Any] = field(default_factory=lambda: {"bucket_cap_mb": 1e-6})
    # How the forward goes, and in which steps: (step % every == 0). See Heads.
    forward: str = "plain"
    every: int = 1
    micro: int = 1  # batches of a step; all but the last in no_sync
    set_to_none: bool = True
    optimizer: str = "sgd"
    clip: bool = False
    scaler: bool = False  # GradScaler whose scale grows every 4 steps
    poisoned: tuple[tuple[int, int], ...] = ()  # (rank, step) with a gradient that is not finite
    batch_norm: bool = False
    unused: bool = False  # heads that are left out, by rank and step
    join: bool = False
    fewer: int = 0  # batches that rank 1 has less
    effective: bool = False  # Join divides by the number of ranks that still take part
    hook: str = ""  # of default_hooks
    reduces_loss: bool = False
    stops_at: int | None = None  # rank 0 says so in a broadcast every 5 steps
    evaluates: bool = False  # rank 0, 80 ms, every 10 steps
    late: tuple[int, ...] = (1, 3)
    often: float = 0.15  # of the steps of a late rank
    stall_ms: tuple[float, float] = (40, 80)
    seed: int = 1
    stalls: int = 0  # another seed, of the stalls alone
    together: bool = False  # the late ranks are late in the same steps
    floats: bool = False  # a loss that is not linear: gradients depend on what was applied before
    mode: str = "carry"
    staleness: int = 8
    # Why no slot may be filled: a pattern that its reason must match. None: slots must be filled.
    stands_down: str | None = None
    # Ranks that it leaves alone: the root of DDP's broadcasts, which the others need in every step.
    left_alone: tuple[int, ...] = ()
    # Whether slots may have been filled before it stood down.
    armed_at_first: bool = False
    settings: dict[str, str] = field(default_factory=dict)  # {folder}: that of all records

    @property
    def learning_rate(self) -> float:
        return 2.0**-6

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        """Shapes of the parameters, as `parameters()` lists them, of one model."""
        shapes: list[tuple[int, ...]] = []
        for inputs, outputs, bias in self.heads:
            shapes += [(outputs, inputs), *([(outputs,)] if bias else [])]
        return [*shapes, *([(4, 6)] if self.batch_norm else [])]


# ---- What is known without running it --------------------------------------------------------------------------------


def generator(program: Program, *key: int) -> np.random.Generator:
    return np.random.default_rng([program.seed, *key])


def batch(program: Program, rank: int, step: int, micro: int, model: int) -> list[tuple[Array, Array]]:
    """Input and target of each head, integers."""
    drawn = generator(program, 1, rank, step, micro, model)
    top = program.largest
    pairs = []
    for inputs, outputs, _ in program.heads:
        x, t = drawn.integers(-top, top + 1, (BATCH, inputs)), drawn.integers(-top, top + 1, (BATCH, outputs))
        if program.floats:
            x, t = drawn.normal(size=(BATCH, inputs)), drawn.normal(size=(BATCH, outputs))
        pairs.append((x.astype(np.float64), t.astype(np.float64)))
    if (rank, step) in program.poisoned:
        x, t = pairs[-1]
        pairs[-1] = (np.full_like(x, np.inf), np.ones_like(t))
    return pairs


def normalised(program: Program, rank: int, step: int, micro: int) -> tuple[Array, Array]:
    """Input and target of the layer behind BatchNorm."""
    drawn = generator(program, 2, rank, step, micro)
    return drawn.integers(-3, 4, (8, 6)).astype(np.float64), drawn.integers(-3, 4, (8, 4)).astype(np.float64)


def uses(program: Program, rank: int, step: int, head: int) -> bool:
    return not program.unused or (rank + step + head) % 3 != 0


def steps_of(program: Program, rank: int) -> int:
    return program.steps - (program.fewer if rank == 1 else 0)


def steps_made(program: Program) -> int:
    """The steps that ranks make before the flush, where all make the same."""
    if program.stops_at is None:
        return program.steps
    return -(-program.stops_at // 5) * 5 + 1  # it is asked after each fifth step


def stall(program: Program, rank: int, step: int) -> tuple[float, bool]:
    """Seconds for which a rank sleeps in a step, and whether it does in the backward."""
    if program.evaluates and rank == 0 and step > ARMED and step % 10 == 5:
        return 0.08, False
    drawn = generator(
        program, 3, program.late[0] if program.together and rank in program.late else rank, step, program.stalls
    )
    low, high = program.stall_ms
    seconds, inside = drawn.uniform(low, high) / 1000, bool(drawn.random() < 0.3)
    if rank not in program.late or step <= ARMED:
        return 0.0, False
    # The last step has a late rank, so that something is owed when the program ends.
    last = rank == program.late[0] and step == steps_made(program) - 1
    return (seconds, inside and not last) if last or drawn.random() < program.often else (0.0, False)


# ---- The model -------------------------------------------------------------------------------------------------------


class SumOfGradients(torch.autograd.Function):
    """The identity, whose backward adds the gradients of all ranks, as a tensor parallel layer does."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, how: str) -> torch.Tensor:
        ctx.how = how
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        if ctx.how == "functional":
            return functional.all_reduce(gradient.contiguous(), "sum", dist.group.WORLD), None
        summed = gradient.clone()
        dist.all_reduce(summed)
        return summed, None


class Heads(torch.nn.Module):
    """Linear layers side by side, each with an input of its own."""

    def __init__(self, program: Program, model: int) -> None:
        super().__init__()
        self.how = program.forward
        self.layers = torch.nn.ModuleList(torch.nn.Linear(i, o, bias=bias) for i, o, bias in program.heads)
        self.norm = torch.nn.BatchNorm1d(6, affine=False) if program.batch_norm else None
        self.behind = torch.nn.Linear(6, 4, bias=False) if program.batch_norm else None
        self.seen: list[str] = []  # digests of the buffers, as each forward finds them
        drawn = generator(program, 4, model)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.from_numpy(drawn.integers(-9, 10, tuple(parameter.shape))))

    def forward(
        self, inputs: list[torch.Tensor], used: list[bool], now: bool, norm: torch.Tensor | None
    ) -> list[torch.Tensor | None]:
        outputs: list[torch.Tensor | None] = []
        for layer, x, use in zip(self.layers, inputs, used, strict=True):
            outputs.append(self.head(layer, x, now) if use else None)
        if self.norm and self.behind and norm is not None:
            self.seen.append(digest([self.norm.running_mean, self.norm.running_var]))
            outputs.append(self.behind(self.norm(norm)))
        return outputs

    def head(self, layer: torch.nn.Module, x: torch.Tensor, now: bool) -> torch.Tensor:
        if self.how in ("reentrant", "not reentrant"):
            out: torch.Tensor = checkpoint(layer, x.requires_grad_(), use_reentrant=self.how == "reentrant")
            return out
        y: torch.Tensor = layer(x)
        if not now or self.how == "plain":
            return y
        if self.how == "nn.all_reduce":
            summed: torch.Tensor = with_autograd.all_reduce(y)
            return summed
        if self.how == "gathered":
            gathered = functional.all_gather_tensor_autograd(y, 0, dist.group.WORLD)
            return gathered.view(dist.get_world_size(), *y.shape).sum(0)
        return SumOfGradients.apply(y, self.how)


def digest(tensors: list[torch.Tensor]) -> str:
    total = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        total.update(tensor.detach().numpy().tobytes())
    return total.hexdigest()


def optimizer_of(program: Program, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    rate = program.learning_rate
    if program.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=rate)
    return torch.optim.SGD(parameters, lr=rate, momentum=0.9 if program.optimizer == "momentum" else 0.0)


def scaler_of(program: Program) -> torch.amp.GradScaler | None:
    """Its scale doubles every 4 steps; a skipped step, one in 97, takes 24 doublings back, so that it stays bounded."""
    if not program.scaler:
        return None
    return torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=4, backoff_factor=2.0**-24)


# ---- One rank --------------------------------------------------------------------------------------------------------


class Training:
    """A program on one rank, and what is noted of it at each step."""

    def __init__(self, program: Program, rank: int) -> None:
        self.program, self.rank = program, rank
        self.models = [DistributedDataParallel(Heads(program, model), **program.ddp) for model in range(program.models)]
        if program.hook:
            for model in self.models:
                model.register_comm_hook(None, getattr(default_hooks, program.hook))
        self.parameters = [parameter for model in self.models for parameter in model.parameters()]
        self.optimizer = optimizer_of(program, self.parameters)
        self.scaler = scaler_of(program)
        self.digests: list[str] = []
        self.reduced: list[Array] = []
        self.places: list[list[int]] = []  # where gradients lie
        self.start = self.flat()

    def flat(self) -> Array:
        return torch.cat([p.detach().reshape(-1) for p in self.parameters]).numpy().astype(np.float64)

    def step(self, step: int) -> None:
        self.optimizer.zero_grad(set_to_none=self.program.set_to_none)
        for number, model in enumerate(self.models):
            for micro in range(self.program.micro):
                last = micro == self.program.micro - 1
                with contextlib.nullcontext() if last else model.no_sync():
                    self.backward(model, number, step, micro, last and number == 0)
        if self.scaler:
            self.scaler.unscale_(self.optimizer)
        zero = [torch.zeros(p.numel()) if p.grad is None else p.grad.reshape(-1) for p in self.parameters]
        self.reduced.append(torch.cat(zero).numpy().copy())
        self.places.append([0 if p.grad is None else p.grad.data_ptr() for p in self.parameters])
        if self.program.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.digests.append(digest(self.parameters))

    def backward(self, model: DistributedDataParallel, number: int, step: int, micro: int, may_stall: bool) -> None:
        seconds, inside = stall(self.program, self.rank, step) if may_stall else (0.0, False)
        if seconds and not inside:
            time.sleep(seconds)
        loss = loss_of(self.program, model, self.rank, step, micro, number, seconds if inside else 0)
        (self.scaler.scale(loss) if self.scaler else loss).backward()
        if self.program.reduces_loss:
            dist.all_reduce(loss.detach().clone())


def loss_of(
    program: Program, module: torch.nn.Module, rank: int, step: int, micro: int, model: int, sleeps: float
) -> torch.Tensor:
    """The loss of a batch. `sleeps`: seconds for which the gradient of the first head is late in the backward."""
    pairs = batch(program, rank, step, micro, model)
    inputs = [torch.tensor(x, dtype=torch.float32) for x, _ in pairs]
    targets = [torch.tensor(t, dtype=torch.float32) for _, t in pairs]
    used = [uses(program, rank, step, head) for head in range(len(pairs))]
    norm = None
    if program.batch_norm:
        norm, target = (torch.tensor(part, dtype=torch.float32) for part in normalised(program, rank, step, micro))
        targets.append(target)
    outputs = module(inputs, used, step % program.every == 0, norm)
    if sleeps:
        # Its bucket, and those that come later, are late; those before are not.
        outputs[0].register_hook(lambda gradient: time.sleep(sleeps))
    if program.floats:
        losses = [torch.square(y - t).mean() for y, t in zip(outputs, targets, strict=True)]
    else:
        losses = [(y * t).sum() for y, t in zip(outputs, targets, strict=True) if y is not None]
    return torch.stack(losses).sum()


def train(program: Program, rank: int) -> dict[str, Any]:
    """Makes all steps, then one after a flush; gives what was seen."""
    training = Training(program, rank)
    initial = not program.effective
    # To make a Join is enough for DDP to take part in it.
    join = training.models[0].join(divide_by_initial_world_size=initial) if program.join else contextlib.nullcontext()
    with join:
        for step in range(steps_of(program, rank)):
            training.step(step)
            if program.stops_at is not None and step % 5 == 0:
                flag = torch.tensor([float(rank == 0 and step >= program.stops_at)])
                dist.broadcast(flag, 0)
                if flag.item():
                    break
    seen = {"end": training.flat(), **mitigation()}
    if not (program.fewer or program.stops_at):
        flush()
        training.step(program.steps)
    after = mitigation()
    return {
        "start": training.start,
        "reduced": np.stack(training.reduced),
        "digests": training.digests,
        "places": training.places,
        "buffers": [d for model in training.models for d in model.module.seen],
        **seen,
        "end_after_flush": training.flat(),
        "owed_after_flush": after["owed"],
        "ledger_after_flush": after["ledger"],
    }


def mitigation() -> dict[str, Any]:
    """What this rank owes, by bucket, and its ledger; on gloo, nothing."""
    if os.environ["BACKEND"] == "gloo":
        return {"owed": {}, "ledger": None}
    import torch_straggler

    state, ledger = torch_straggler.state_dict(), torch_straggler.ledger()
    assert state["version"] == 1
    residuals = {int(b): r.numpy().astype(np.float64) for b, r in state["residuals"].items()}
    return {"owed": residuals, "ledger": None if ledger is None else dataclasses.asdict(ledger)}


def flush() -> None:
    if os.environ["BACKEND"] != "gloo":
        import torch_straggler

        torch_straggler.flush()


def configure(program: Program, folder: Path) -> None:
    """The settings of the group that is made next."""
    if os.environ["BACKEND"] == "gloo":
        return
    os.environ |= {
        "STRAGGLER_DIR": str(folder / program.name),
        "STRAGGLER_MITIGATE": program.mode,
        "STRAGGLER_STALENESS": str(program.staleness),
        "STRAGGLER_GRACE_MS": "5",
        **{name: value.format(folder=folder) for name, value in program.settings.items()},
    }


def run(programs: list[Program], rank: int, folder: Path, launcher: dist.Store) -> None:
    """Runs programs one after the other, each in a group of its own, and writes what each saw to the folder.

    A program that needs fewer ranks than there are leaves the others out.
    """
    warnings.simplefilter("ignore")
    for program in programs:
        kept = dict(os.environ)
        if rank < program.ranks:
            configure(program, folder)
            backend, timeout = os.environ["BACKEND"], timedelta(seconds=30)
            store = dist.PrefixStore(program.name, launcher)
            dist.init_process_group(backend, store=store, rank=rank, world_size=program.ranks, timeout=timeout)
            seen = train(program, rank)
            dist.barrier()
            dist.destroy_process_group()
            write(folder, program, rank, seen)
        os.environ.clear()
        os.environ.update(kept)


# ---- What a rank saw, from its process to the test's -----------------------------------------------------------------


def write(folder: Path, program: Program, rank: int, seen: dict[str, Any]) -> None:
    arrays = {name: value for name, value in seen.items() if isinstance(value, np.ndarray)}
    for name in ("owed", "owed_after_flush"):
        arrays |= {f"{name}.{bucket}": residual for bucket, residual in seen[name].items()}
    rest = {name: value for name, value in seen.items() if name not in arrays and not name.startswith("owed")}
    np.savez(folder / f"{program.name}-{rank}.npz", rest=np.array(json.dumps(rest)), **arrays)


def read(folder: Path, program: Program, rank: int) -> dict[str, Any]:
    with np.load(folder / f"{program.name}-{rank}.npz") as loaded:
        arrays = {name: loaded[name] for name in loaded.files if name != "rest"}
        seen: dict[str, Any] = json.loads(str(loaded["rest"]))
    for name in ("owed", "owed_after_flush"):
        seen[name] = {int(key.split(".")[1]): value for key, value in arrays.items() if key.startswith(f"{name}.")}
    return seen | {name: value for name, value in arrays.items() if "." not in name}
