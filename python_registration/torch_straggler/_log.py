"""What this package says to people: through Python's `logging`, under the one name `torch_straggler`.

Where the program has set `logging` up, its handlers, formats and levels hold. Where it has not, the text goes to
standard error as it is. The report at the end is one record of several lines.

| level | what |
| --- | --- |
| INFO | who is seen, a verdict that nobody is to blame or that is over, the report at the end |
| WARNING | a straggler, an imbalance, a job that is slower as a whole; something that could not be observed |
| ERROR | what was asked for is not done |

The C++ side calls `emit` on a thread that it has for nothing else, so a handler may be slow, raise, log itself, or
block for ever. What that thread must not do is hold a lock that the interpreter waits for at its exit: see
`_until_taken` and `leave_stuck_handlers`.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import select
import sys
import traceback

NAME = "torch_straggler"

LOCK_SECONDS = 0.2  # a handler that is not stuck has let go of its lock by then

_levelled = False
_in_handlers = False


def emit(level: int, text: str) -> None:
    """Says one or several lines. Never raises for what a handler does."""
    global _in_handlers
    text = text.rstrip("\n")
    try:
        logger = _logger()
        if not logger.isEnabledFor(level):
            return
        if logger.hasHandlers():
            _until_taken(logger)
            _in_handlers = True
            logger.log(level, text)
        else:
            _write(text)
    except Exception:
        if logging.raiseExceptions and sys.stderr is not None:
            with contextlib.suppress(Exception):
                traceback.print_exc()
    finally:
        _in_handlers = False


def leave_stuck_handlers() -> None:
    """Has `logging` forget the handlers that our thread is stuck in: at exit it would wait for their locks for ever.

    Called at the exit of the interpreter, once nothing more is waited for. Elsewhere it does nothing.
    """
    if not _in_handlers:
        return
    for reference in list(logging._handlerList):  # type: ignore[attr-defined]
        lock = getattr(reference(), "lock", None)
        if lock is None:
            continue
        if lock.acquire(timeout=LOCK_SECONDS):
            lock.release()
        else:
            logging._handlerList.remove(reference)  # type: ignore[attr-defined]


def _logger() -> logging.Logger:
    """Our logger. The first time, its level becomes INFO if the program chose none.

    The root logger's own default, WARNING, is no choice: with it the report would be dropped.
    """
    global _levelled
    logger = logging.getLogger(NAME)
    if not _levelled:
        _levelled = True
        if logger.level == logging.NOTSET and logging.getLogger().level == logging.WARNING:
            logger.setLevel(logging.INFO)
    return logger


def _write(text: str) -> None:
    """To standard error, and past its buffer where it has a descriptor: see `_until_taken`."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):  # it is closed
        descriptor = _descriptor(sys.stderr)
        if descriptor is None:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
            return
        rest = (text + "\n").encode(sys.stderr.encoding, "backslashreplace")
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _until_taken(logger: logging.Logger) -> None:
    """Waits, without a lock, until the streams of the logger's handlers take something.

    A handler that writes to a pipe which nobody empties blocks with the lock of the stream's buffer in its hands. At
    its exit the interpreter flushes standard error, waits for that lock for a second, and aborts the process.
    """
    at: logging.Logger | None = logger
    while at is not None:
        for handler in at.handlers:
            descriptor = _descriptor(getattr(handler, "stream", None))
            if descriptor is not None:
                poll = select.poll()
                poll.register(descriptor, select.POLLOUT)
                poll.poll()
        at = at.parent if at.propagate else None


def _descriptor(stream: object) -> int | None:
    """The descriptor of one of Python's own text files; None for anything else that text can be written to."""
    try:
        return stream.fileno() if isinstance(stream, io.TextIOWrapper) else None
    except (OSError, ValueError):  # it is closed, or has none
        return None
