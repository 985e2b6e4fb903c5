"""Waiting for an instant: how a rank arrives when it should.

A sleep overshoots by some tens of microseconds; a spin takes the core from ranks that have to send and receive. So a
rank sleeps until shortly before the instant, and spins for the rest.
"""

from __future__ import annotations

import time

SPIN_NS = 60_000  # a sleep on an idle core overshoots by less, once its timer is not rounded


def wait_until(due_ns: int) -> int:
    """Returns at `due_ns` on CLOCK_MONOTONIC, or at once if that is past. Returns the time then."""
    while (left := due_ns - time.monotonic_ns()) > SPIN_NS:
        time.sleep((left - SPIN_NS) / 1e9)
    while (now := time.monotonic_ns()) < due_ns:
        pass
    return now
