"""What this package says to people: through Python's `logging`, under the one name `torch_straggler`.

Where the program has set `logging` up, its handlers, formats and levels hold. Where it has not, the text goes to
standard error as it is. The report at the end is one record of several lines.

| level | what |
| --- | --- |
| INFO | who is seen, a verdict that nobody is to blame or that is over, the report at the end |
| WARNING | a straggler, an imbalance, a job that is slower as a whole; something that could not be observed |
| ERROR | what was asked for is not done |

The C++ side calls `emit` on a thread that it has for nothing else, so a handler may be slow, raise, or log itself.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback

NAME = "torch_straggler"

_levelled = False


def emit(level: int, text: str) -> None:
    """Says one or several lines. Never raises for what a handler does."""
    text = text.rstrip("\n")
    try:
        logger = _logger()
        if not logger.isEnabledFor(level):
            return
        if logger.hasHandlers():
            logger.log(level, text)
        else:
            _write(text)
    except Exception:
        if logging.raiseExceptions and sys.stderr is not None:
            with contextlib.suppress(Exception):
                traceback.print_exc()


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
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # it is closed
            sys.stderr.write(text + "\n")
            sys.stderr.flush()
