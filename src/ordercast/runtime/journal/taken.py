"""A counter in a mapped file: a plain store into memory that the kernel keeps if we are killed.

Two slots in turn, each a value and its complement. Whether a store of eight bytes is one
instruction is the compiler's choice, and a slot has two of them: a process killed in between
leaves a slot that does not fit, and the other one still has the value before. So does a slot
that the disk has damaged. The greater of those that fit is the value: it only grows.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from ordercast.errors import JournalError

__all__ = ["Taken"]

FILE_BYTES = 4096
MAGIC = b"ordtaken"
_ALL_ONES = 2**64 - 1
_FIRST = 1
"""In words of eight bytes; the magic comes before."""
_BOTH = _FIRST + (_FIRST + 2)
"""One slot's place is this minus the other's."""


class Taken:
    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("r+b") as file:
            if os.fstat(file.fileno()).st_size != FILE_BYTES or file.read(8) != MAGIC:
                raise _broken(path, "it is not as it was made")
            self._map = mmap.mmap(file.fileno(), FILE_BYTES)
        self._words = memoryview(self._map).cast("Q")
        slots = [(self._words[i], i) for i in (_FIRST, _FIRST + 2) if self._fits(i)]
        if not slots:
            self.close()
            raise _broken(path, "neither of its two values fits its complement")
        self._value, self._slot = max(slots)

    @staticmethod
    def create(path: Path) -> None:
        """Zero. The file is really written: storing into a hole on a full disk would kill us."""
        zero = (0).to_bytes(8) + _ALL_ONES.to_bytes(8)
        with path.open("wb") as file:
            file.write((MAGIC + zero + zero).ljust(FILE_BYTES, b"\0"))
            file.flush()
            os.fsync(file.fileno())

    @property
    def value(self) -> int:
        return self._value

    def mark(self, value: int) -> None:
        """Set it, if it grows; called for every delivery, so nothing more is done."""
        if value > self._value:
            slot = self._slot = _BOTH - self._slot
            words = self._words
            words[slot] = value
            words[slot + 1] = value ^ _ALL_ONES
            self._value = value

    def sync(self) -> None:
        self._map.flush()

    def close(self) -> None:
        self._words.release()
        self._map.close()

    def _fits(self, slot: int) -> bool:
        return self._words[slot] ^ self._words[slot + 1] == _ALL_ONES


def _broken(path: Path, why: str) -> JournalError:
    return JournalError(
        f"{path} is corrupt: {why}; restore the file from a backup, or remove the directory "
        f"{path.parent} and let the member join anew (see “A broken journal” in the documentation)"
    )
