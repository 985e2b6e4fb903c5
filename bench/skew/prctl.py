"""Two requests of a rank to the kernel, by Linux's prctl(2). On other systems they do nothing."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_TIMERSLACK = 29


def end_with_parent() -> None:
    """Has this process killed when the one that started it dies, even by a signal that nothing can handle."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():  # it died before the request
        os._exit(1)


def tighten_timer() -> None:
    """Turns off the kernel's rounding of this thread's sleeps, 50 µs otherwise."""
    _prctl(PR_SET_TIMERSLACK, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value))
