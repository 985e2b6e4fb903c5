"""What the installed package adds to `import torch`: with and without its entry point, in fresh processes, interleaved.

    .venv/bin/python bench/overhead/import_torch.py --json bench/overhead/results/import_torch.json

The process times `import torch` by itself. "Without" replaces the entry point's function, before torch is imported, by
one that returns at once; torch's search for entry points is in both. The control is "without" once more.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from common import dump, interval, table

TIMED = "import time; begin = time.perf_counter(); import torch; print(time.perf_counter() - begin)"
PREPARED = {
    "with": "",
    "without": "import sys, types; m = types.ModuleType('torch_straggler_autoload'); m.autoload = lambda: None; "
    "sys.modules['torch_straggler_autoload'] = m; ",
}
PREPARED["control"] = PREPARED["without"]


def seconds(prepared: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", prepared + TIMED], capture_output=True, text=True, check=True, timeout=120
    )
    return float(done.stdout)


def added(times: dict[str, list[float]], name: str) -> list[float]:
    """Milliseconds, with its interval."""
    return interval([1e3 * (a - b) for a, b in zip(times[name], times["without"], strict=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", default=None)
    args = parser.parse_args()
    times: dict[str, list[float]] = {name: [] for name in PREPARED}
    for name in PREPARED:
        seconds(PREPARED[name])  # warms the file cache
    for round_ in range(args.rounds):
        names = list(PREPARED) if round_ % 2 == 0 else list(reversed(PREPARED))
        for name in names:
            times[name].append(seconds(PREPARED[name]))
    rows = [
        {
            "case": "import torch",
            "without_ms": interval([1e3 * t for t in times["without"]]),
            "added_ms": added(times, "with"),
            "control_added_ms": added(times, "control"),
        }
    ]
    table("import torch", rows, sys.stdout)
    if args.json:
        dump(args.json, "import_torch", rows, vars(args))


if __name__ == "__main__":
    main()
