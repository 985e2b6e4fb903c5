"""Does training end where synchronous training does? Accuracy and loss at equal step, with gradients that come late.

    .venv/bin/python bench/mitigation/training.py
    .venv/bin/python bench/mitigation/training.py --tasks cnn --seeds 2 --out /tmp/training.json

Three tasks on scikit-learn's digits, a third of which is not trained on:

- `mlp` and `cnn` (with BatchNorm) under W1: DDP on gloo against `carry`.
- `W11`: each of five ranks has the samples of two labels; in a run one rank is late, always the same. `drop` too.

A seed's runs have the same initial weights, the same samples by rank and step, and the same delays. Loss, of all
training samples, and accuracy are those of rank 0 after the last step; that all ranks have the same weights after every
step is checked. The script does nothing for mitigation: what is owed after the last step stays so, and is given.

Of `accuracy` and `loss` the paired differences to plain count: mean, and its 95 % interval (Student's t).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "overhead")]

import job  # noqa: E402
import numpy as np  # noqa: E402
import rank  # noqa: E402
import schemes  # noqa: E402
import scores  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import workloads  # noqa: E402
from common import dump  # noqa: E402
from mitigation import limit_s  # noqa: E402
from scipy import stats  # noqa: E402
from scores import Record, Row  # noqa: E402
from torch import nn  # noqa: E402

LABELS = 10
HELD_OUT = 599  # of 1,797
MARGIN = 0.01  # of accuracy: one point
LEARNING_RATE = 0.03  # in the second half of the steps linearly to 0

# ---- Tasks -----------------------------------------------------------------------------------------------------------


def one_late(world: workloads.World, number: int) -> workloads.Delays:
    """The same rank always, in 5 % of its steps, by 20 bases: so it is behind most of the time."""
    delays = workloads.never(world, number)
    if number == world.victim:
        delays[:, workloads.BEFORE_BACKWARD] = 20 * (world.own(number).random(world.steps) < 0.05)
    return delays


W11 = workloads.Workload("W11", "data sharded by label, the same rank always late", one_late, schemes=workloads.MODES)
workloads.WORKLOADS[W11.name] = W11  # here alone: it is not a question of time


def mlp() -> nn.Module:
    hidden = [nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()]
    return nn.Sequential(nn.LayerNorm(64, elementwise_affine=False), *hidden, nn.Linear(64, LABELS))


def cnn() -> nn.Module:
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), *block(1, 8), *block(8, 16), nn.Flatten(), nn.Linear(64, LABELS))


@dataclass(frozen=True)
class Variant:
    """A scheme with a staleness; of the first so many seeds alone, if not of all."""

    scheme: str
    staleness: int = 0  # of no meaning to plain
    seeds: int | None = None

    @property
    def name(self) -> str:
        return f"{self.scheme} {self.staleness}" if self.staleness else self.scheme


@dataclass(frozen=True)
class Task:
    model: Callable[[], nn.Module]
    workload: str
    ranks: int
    variants: tuple[Variant, ...]


PLAIN = Variant("plain")
TASKS = {
    "mlp": Task(mlp, "W1", 8, (PLAIN, Variant("carry", 8), Variant("carry", 32))),
    "cnn": Task(cnn, "W1", 4, (PLAIN, Variant("carry", 8), Variant("carry", 32))),
    # 8 is the default. With five seeds each rank is once the late one.
    "W11": Task(mlp, W11.name, 5, (PLAIN, Variant("carry", 8), Variant("drop", 8, 5), Variant("carry", 32, 3))),
}


@dataclass(frozen=True)
class Run(rank.Run):
    task: str
    variant: Variant


# ---- A rank ----------------------------------------------------------------------------------------------------------


def main(number: int, run: Any, port: int, folder: Path, lighthouse: str) -> None:
    rank.work(number, run, port, folder, lighthouse, run.variant.staleness, TASKS[run.task].model, Learner)


class Learner(rank.Rank):
    def __init__(self, number: int, run: rank.Run, training: schemes.Training, store: dist.Store, folder: Path) -> None:
        super().__init__(number, run, training, store, folder)
        if run.workload == W11.name:
            own = torch.isin(self.labels, torch.tensor(labels_of(number, run.ranks))).nonzero().flatten()
            drawn = np.random.default_rng([run.seed, 3, number]).integers(len(own), size=self.batches.shape)
            self.batches = own[torch.from_numpy(drawn)]

    def _step(self, step: int) -> None:
        for group in self.training.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, 2 * (1 - step / len(self.batches)))
        super()._step(step)

    def evaluate(self, module: nn.Module) -> dict[str, Any]:
        told = super().evaluate(module)
        with torch.no_grad():
            right = module(self.test_images).argmax(1) == self.test_labels
            loss = nn.functional.cross_entropy(module(self.images), self.labels).item()
        labels = [self.test_labels == label for label in range(LABELS)]
        return told | {"loss": loss, "by_label": [right[of].float().mean().item() for of in labels]}


def labels_of(number: int, ranks: int) -> list[int]:
    return [label for label in range(LABELS) if label * ranks // LABELS == number]


# ---- Figures ---------------------------------------------------------------------------------------------------------


def record(run: Run, seen: job.Seen, plain: job.Seen | None) -> Record:
    """As in the table of times, but of rank 0's model: where buffers are broadcast, they are right there."""
    first = seen.told[0]
    found = (
        scores.record(run, seen, plain)
        | {"task": run.task, "variant": run.variant.name}
        | {name: first[name] for name in ("accuracy", "loss")}
    )
    if run.workload == W11.name:
        own = labels_of(run.world.victim, run.ranks)
        found["victim"] = run.world.victim
        found["accuracy_late"] = statistics.fmean(first["by_label"][label] for label in own)
        others = [first["by_label"][label] for label in range(LABELS) if label not in own]
        found["accuracy_others"] = statistics.fmean(others)
    ledgers = [told["ledger"] for told in seen.told]
    if all(ledgers):
        found["on_time_share"] = [_on_time(ledger) for ledger in ledgers]
    return found


def _on_time(ledger: dict[str, Any]) -> float:
    """Of the gradients that a rank has made, from when mitigation knew the buckets."""
    counts = [sum(bucket[name] for bucket in ledger["buckets"]) for name in ("on_time", "produced")]
    return counts[0] / counts[1] if counts[1] else 1.0


def row(task: str, variant: str, records: Sequence[Record]) -> Row:
    """One task's runs with a scheme, against the plain ones of the same seeds."""
    every = [found for found in records if found["task"] == task]
    plain = {found["seed"]: found for found in every if found["scheme"] == "plain"}
    runs = [found for found in every if found["variant"] == variant and found["seed"] in plain]
    low, high = (of(found["loss"] for found in plain.values()) for of in (min, max))
    told = [found["mitigation"] for found in runs if found["mitigation"]]
    made: Row = {
        "task": task,
        "variant": variant,
        "seeds": len(runs),
        **{name: _spread(runs, name) for name in ("accuracy", "loss", "seconds", "own_share")},
        "identical": [sum(found[name] for found in runs) for name in ("identical_steps", "compared_steps")],
    }
    if task == "W11":
        made |= {name: _spread(runs, name) for name in ("accuracy_late", "accuracy_others")}
    if variant == PLAIN.name:
        return made
    made |= {f"{name}_difference": _paired(runs, plain, name) for name in ("accuracy", "loss")}
    _, down, up = made["accuracy_difference"]
    made |= {
        "accuracy_within": down >= -MARGIN and up <= MARGIN,
        "loss_range_plain": [low, high],
        "losses_within": sum(low <= found["loss"] <= high for found in runs),
        "speed_up": _middle([plain[found["seed"]]["seconds"] / found["seconds"] for found in runs]),
        "bound": _middle([plain[found["seed"]]["synchronous_s"] / plain[found["seed"]]["bound_s"] for found in runs]),
        **{name: sum(one[name] for one in told) for name in ("produced", "on_time", "late", "dropped", "pending")},
        "staleness_mean": _ratio(sum(one["staleness_sum"] for one in told), sum(one["late"] for one in told)),
        "staleness_max": max(one["staleness_max"] for one in told),
        "armed_runs": sum(one["armed_ranks"] == runs[0]["ranks"] for one in told),
        "reasons": sorted({reason for one in told for reason in one["reasons"]}),
        "lines": sorted({line for found in runs for line in found["lines"]}),
    }
    if task == "W11":
        made["accuracy_late_difference"] = _paired(runs, plain, "accuracy_late")
        made["accuracy_others_difference"] = _paired(runs, plain, "accuracy_others")
        made["on_time_share_late"] = _middle([found["on_time_share"][found["victim"]] for found in runs])
        shares = [share for found in runs for r, share in enumerate(found["on_time_share"]) if r != found["victim"]]
        made["on_time_share_others"] = _middle(shares)
    return made


def _paired(runs: Sequence[Record], plain: dict[int, Record], name: str) -> list[float]:
    """Mean of the differences to the plain run of the same seed, and its 95 % interval."""
    differences = [found[name] - plain[found["seed"]][name] for found in runs]
    mean = statistics.fmean(differences)
    if len(differences) < 2:
        return [mean, float("-inf"), float("inf")]
    half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
    return [round(float(value), 5) for value in (mean, mean - half, mean + half)]


def _spread(runs: Sequence[Record], name: str) -> list[float]:
    """Mean, smallest, largest."""
    values = [found[name] for found in runs]
    return [round(float(of(values)), 5) for of in (statistics.fmean, min, max)]


def _middle(values: Sequence[float]) -> list[float]:
    """Median, smallest, largest."""
    return [round(float(of(values)), 4) for of in (statistics.median, min, max)]


def _ratio(above: float, below: float) -> float | None:
    return round(above / below, 2) if below else None


# ---- The bench -------------------------------------------------------------------------------------------------------


def measure(task: str, seed: int, options: argparse.Namespace, folder: Path) -> list[Record]:
    """All variants with one seed; every other seed in the opposite order.

    Raises:
        job.RunError: a rank failed, or the time limit was reached.
    """
    variants = [one for one in TASKS[task].variants if one.seeds is None or seed < options.seed + one.seeds]
    runs = [
        Run(
            workload=TASKS[task].workload,
            scheme=variant.scheme,
            ranks=TASKS[task].ranks,
            steps=options.steps,
            warm_up=options.warm_up,
            base_s=options.base_ms / 1e3,
            seed=seed,
            task=task,
            variant=variant,
        )
        for variant in (variants if seed % 2 else variants[::-1])
    ]
    seen = {run: job.run(run, folder, limit_s(run), main) for run in runs}
    plain = next(seen[run] for run in runs if run.scheme == "plain")
    return [record(run, seen[run], plain) for run in runs]


def _line(found: Record) -> str:
    text = f"{found['task']:4} {found['variant']:8} seed {found['seed']:2}: accuracy {found['accuracy']:.4f}, loss "
    text += f"{found['loss']:.4f}, {found['seconds']:.1f} s, identical {found['identical_steps']} of "
    text += f"{found['compared_steps']}, own {found['own_share']:.2f} of a step"
    if found["mitigation"]:
        shown = {name: found["mitigation"][name] for name in ("produced", "late", "dropped", "pending", "armed_ranks")}
        text += f"; {shown}, on time {[round(share, 2) for share in found['on_time_share']]}"
    if "victim" in found:
        text += f"; rank {found['victim']} late: {found['accuracy_late']:.3f}, others {found['accuracy_others']:.3f}"
    return text


def rows(records: Sequence[Record]) -> list[Row]:
    keys = dict.fromkeys((found["task"], found["variant"]) for found in records)
    return [row(*key, records) for key in sorted(keys, key=lambda key: list(TASKS).index(key[0]))]


def write(records: Sequence[Record], options: argparse.Namespace) -> None:
    settings = {
        "optimizer": "SGD",
        "learning_rate": f"{LEARNING_RATE}, in the second half of the steps linearly to 0",
        "momentum": schemes.MOMENTUM,
        "batch": rank.BATCH,
        "held_out": HELD_OUT,
        "version": metadata.version("torch_straggler"),
        "runs": records,
    }
    dump(
        str(options.out),
        "training",
        rows(records),
        {name: str(value) for name, value in vars(options).items()} | settings,
    )


def bench() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--steps", type=int, default=160, help="after the warm-up")
    parser.add_argument("--warm-up", type=int, default=30, help="steps in which nobody is late")
    parser.add_argument("--base-ms", type=float, default=20.0)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "training.json")
    options = parser.parse_args()
    records: list[Record] = []
    with job.prepared(HELD_OUT) as folder:
        for seed in range(options.seed, options.seed + options.seeds):
            for task in options.tasks:
                for found in measure(task, seed, options, folder):
                    records.append(found)
                    print(_line(found), flush=True)
            write(records, options)  # after each seed: what there is
    for made in rows(records):
        print(json.dumps(made))
    identical = all(found["identical_steps"] == found["compared_steps"] for found in records)
    if not identical:
        print("ranks had different weights after the same step")
    return 0 if identical else 1


if __name__ == "__main__":
    sys.exit(bench())
