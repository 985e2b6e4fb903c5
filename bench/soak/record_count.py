"""Counts the operation records of a rank while they are written, and gives their place on the disk back."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

NUMBER = re.compile(rb'"collective_seq_id":(\d+)')
PUNCH_HOLE = 1 | 2  # FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE: linux/falloc.h
_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


class RecordCount:
    """Of a rank in one group.

    Attributes:
        recorded: records read so far.
        missing: sequence numbers that were passed over.
        disorder: records whose number is not above the one before: there must be none.
    """

    def __init__(self, path: Path) -> None:
        self.recorded = self.missing = self.disorder = 0
        self._path = path
        self._offset = 0
        self._next = 0

    def read(self) -> None:
        """Takes in the whole lines that were added."""
        if not self._path.exists():
            return
        with self._path.open("r+b") as file:
            file.seek(self._offset)
            text = file.read()
            text = text[: text.rfind(b"\n") + 1]
            for number in map(int, NUMBER.findall(text)):
                self.recorded += 1
                self.disorder += number < self._next
                self.missing += max(0, number - self._next)
                self._next = number + 1
            self._offset += len(text)
            _libc.fallocate(file.fileno(), PUNCH_HOLE, 0, self._offset)  # where it cannot, the disk has to do

    def end(self, issued: int) -> None:
        """Nothing more is written: what was issued beyond the last record is missing too."""
        self.read()
        self.missing += issued - self._next
