"""Text of the command line to values. Raises InputError, with what is allowed in the sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import TypeVar

from .errors import InputError

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SMALLEST, LARGEST = 4, 1 << 30
LARGEST_SKEW = 100.0

T = TypeVar("T")
SIZE = re.compile(r"(\d+)\s*([KMG]?)(?:I?B)?")


def size(text: str) -> int:
    """Bytes, with a suffix in powers of 1024 as nccl-tests has it: `4`, `64K`, `1M`, `1MiB`."""
    match = SIZE.fullmatch(text.strip().upper())
    value = int(match[1]) * UNITS[match[2]] if match else 0
    if not SMALLEST <= value <= LARGEST:
        raise InputError(f"--bytes {text!r} is not a size; allowed: 4 to 1G, with a suffix K, M or G")
    return value


def sizes(text: str) -> tuple[int, ...]:
    return _unique(size(part) for part in _parts("--bytes", text))


def names(option: str, text: str, allowed: Collection[str]) -> tuple[str, ...]:
    """Names out of `allowed`, in the order given, each once."""
    found = _unique(_parts(option, text))
    for name in found:
        if name not in allowed:
            raise InputError(f"{option} {name!r} is not known; allowed: {', '.join(allowed)}")
    return found


def skews(text: str) -> tuple[float, ...]:
    """Arrival skews, in transfer times."""
    return _unique(_skew(part) for part in _parts("--skews", text))


def whole(option: str, text: str, smallest: int, largest: int) -> int:
    if not text.isdecimal() or not smallest <= int(text) <= largest:
        raise InputError(f"{option} {text!r} is not valid; allowed: a whole number from {smallest} to {largest}")
    return int(text)


def _skew(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= LARGEST_SKEW:
        raise InputError(
            f"--skews {text!r} is not valid; allowed: a number of transfer times from 0 to {LARGEST_SKEW:g}"
        )
    return value


def _parts(option: str, text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{option} is empty; give one value, or several with commas between them")
    return parts


def _unique(values: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))
