"""FEATURES.md: the table of features as text, written by the run that found it out, and read again to be compared."""

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from feature_job import Outcome
from features import FEATURES, SCRIPTS, Feature

DOCUMENT = Path(__file__).parent / "FEATURES.md"
PACKAGES = ("torch", "accelerate", "lightning", "transformers")
TEST = "test_a_feature_works_and_each_collective_of_it_is_recorded_once"

HEAD = f"""# Features

What works through the wrapper as it does without. Each row is one script, unchanged, that says `gloo` and knows
nothing of us: it is run by bare `torchrun` and by `straggler run`.

- *Works*: the exit code and each rank's output are the same, and we complain of nothing.
- *Recorded*: each collective of each group is in its rank's records once, and nothing else is. The records are held
  against gloo's own count, in torch's C++: its Flight Recorder and its sequence numbers, which are the same in both
  jobs. What those lack is said in [counting/sitecustomize.py](counting/sitecustomize.py).
- *Test*: the ID of `test_features.py::{TEST}[ID]`, and its script.
- *Also*: tests of the same feature elsewhere.

`tests/features/others.sh` runs all of it and writes this table; for Lightning and transformers it makes an
environment of its own, build/others. `make test` runs the rows that do not say `others.sh`, and fails where one of
them is not what it says here.

Under the name `straggler_gloo` torch does not take the group for one of gloo's. What it refuses by that name, an
overlapping ZeroRedundancyOptimizer, it does not refuse then, and the job may hang as torch says of gloo: such a job of
two ranks hung in its fifth step. `straggler run` leaves the refusal as it is.

RPC has a gloo group of its own while it starts, which is none of the job's process groups: it is not recorded.

What does not run on CPU with bare `torchrun` of torch 2.15 either has no row:

- DDP with `TORCH_DISTRIBUTED_DEBUG=DETAIL`: torch ends by SIGSEGV on gloo, not through the wrapper.
- DDP with the PowerSGD hook and several buckets: it makes collectives in callbacks and waits for them there, so that
  their order differs by rank, or both of gloo's threads wait. Of 24 jobs of two ranks on bare gloo none came to its end
  (20 mismatches, 4 deadlocks), of 24 through the wrapper none either (15 and 9):
  `.venv/bin/python tests/features/powersgd_buckets.py 24`. With one bucket it is sound, and has its row.
- Of accelerate's scripts `test_distributed_data_loop.py` hangs, since accelerate joins uneven inputs on GPUs only;
  `test_ddp_comm_hook.py` and `test_merge_weights.py` raise; `test_cli.py` and `test_notebook.py` have no collective;
  those in `external_deps` want GPUs, DeepSpeed or downloads.

"""
COLUMNS = "| feature | works | recorded | test | also |\n| --- | --- | --- | --- | --- |\n"


def row(feature: Feature, works: str, recorded: str) -> str:
    test = f"`{feature.id}`"
    if feature.script.parent == SCRIPTS:
        test = f"[{test}](scripts/{feature.script.name})"
    if not feature.quick:
        test += ", others.sh"
    cells = (feature.title, works, recorded, test, ", ".join(f"`{name}`" for name in feature.elsewhere) or "-")
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"


def cells_of(document: str) -> dict[str, tuple[str, str]]:
    """The two cells that a run finds out, by the feature's id."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \| ([^|]+) \| \[?`(\w+)`", document, re.MULTILINE)
    return {id_: (works, recorded) for works, recorded, id_ in rows}


def read() -> str:
    return DOCUMENT.read_text() if DOCUMENT.exists() else ""


def is_of_this_torch() -> bool:
    """Whether the table was found with the torch that is installed, its last number aside."""
    minor = ".".join(version("torch").split(".")[:2])
    return f"torch {minor}." in found_with(read())


def found_with(document: str) -> str:
    """The line that says with which versions it was found."""
    return next((line for line in document.splitlines() if line.startswith("Found with ")), "Found with nothing yet.")


def installed() -> str:
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return f"Found with {', '.join(versions)}."


def render(document: str, outcomes: dict[str, Outcome], versions: str) -> str:
    """The whole document: what `outcomes` found, and else what `document` says."""
    cells = cells_of(document) | {id_: (outcome.works, outcome.recorded) for id_, outcome in outcomes.items()}
    rows = [row(feature, *cells.get(feature.id, ("not run yet", "not run yet"))) for feature in FEATURES]
    return HEAD + COLUMNS + "\n".join(rows) + f"\n\n{versions}\n"
