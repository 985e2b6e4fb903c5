"""Properties that must hold for whatever is read, and how many values they are tried on.

Each run tries the same ones. With FUZZ_SECONDS set it goes on with new ones for so long, each property:

    FUZZ_SECONDS=600 .venv/bin/python -m pytest tests/fuzz -s
"""

import os
import random
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as some

SECONDS = float(os.environ.get("FUZZ_SECONDS", "0"))
EXAMPLES = 300

# What JSON can hold: with the numbers at the ends of what C++ can, text that is no UTF-8, NaN.
ENDS = [
    sign * 2**power + offset for sign in (1, -1) for power in (15, 31, 32, 48, 60, 63, 64, 200) for offset in (-1, 0, 1)
]
TEXT = some.text(some.characters(), max_size=20) | some.sampled_from(
    ["", "\ud800", "ä" * 600, "x" * 2000, "\x1b[2J", "\x00"]
)
PLAIN = some.none() | some.booleans() | some.sampled_from(ENDS) | some.integers(-3, 300) | some.floats() | TEXT
JSON = some.recursive(PLAIN, lambda inner: some.lists(inner, max_size=4) | some.dictionaries(TEXT, inner, max_size=4))


def holds(check: Callable[[Any], None], values: some.SearchStrategy[Any]) -> None:
    """Calls `check` with what the strategy gives. A failure is raised with the smallest values that cause it."""
    common: dict[str, Any] = {"database": None, "deadline": None, "suppress_health_check": list(HealthCheck)}
    calls = 0

    def counted(value: Any) -> None:
        nonlocal calls
        calls += 1
        check(value)

    if not SECONDS:
        settings(max_examples=EXAMPLES, derandomize=True, **common)(given(values)(counted))()
        return
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        number = random.SystemRandom().getrandbits(64)
        seed(number)(settings(max_examples=1000, **common)(given(values)(counted)))()
    print(f"\n{os.environ['PYTEST_CURRENT_TEST']}: {calls} calls in {SECONDS:.0f} s")


@some.composite
def damaged(draw: Callable[..., Any], record: Any) -> Any:
    """The record with some of its values, wherever they are, replaced or left out."""
    for _ in range(draw(some.integers(0, 4))):
        record = _with_one_change(draw, record)
    return record


def _with_one_change(draw: Callable[..., Any], value: Any) -> Any:
    if isinstance(value, dict) and value and draw(some.integers(0, 5)):
        name = draw(some.sampled_from(sorted(value)))
        if not draw(some.integers(0, 9)):
            return {key: inner for key, inner in value.items() if key != name}
        return value | {name: _with_one_change(draw, value[name])}
    if isinstance(value, list) and value and draw(some.integers(0, 5)):
        at = draw(some.integers(0, len(value) - 1))
        return [*value[:at], _with_one_change(draw, value[at]), *value[at + draw(some.integers(0, 1)) :]]
    return draw(JSON)
