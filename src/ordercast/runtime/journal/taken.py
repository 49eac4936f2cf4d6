"""A counter in a mapped file: a plain store into memory that the kernel keeps if we are killed.

Two slots in turn, each a value, its complement, and 4,096 ticks. Whoever takes messages one by
one begins a stretch and then stores a single byte for each, which nothing can interrupt half-way.
Whether a store of eight bytes is one instruction is the compiler's choice: a process killed amidst
those leaves a slot that does not fit, and the other one still has what was before. So does a slot
that the disk has damaged, which the log tells. The greater of those that fit is the value, ticks
and all: it only grows.

The ticks are in the page of their value, all but the last few: after a power loss, a value and the
ticks of an earlier one would otherwise be taken for more than was ever taken.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
from pathlib import Path

from ordercast.errors import JournalError

__all__ = ["TICKS", "Taken"]

TICKS = 4096
"""The longest stretch."""
PAGE_BYTES = 4096
SLOT_BYTES = 2 * PAGE_BYTES
FILE_BYTES = PAGE_BYTES + 2 * SLOT_BYTES
MAGIC = b"ordtake3"
_ALL_ONES = 2**64 - 1
_SLOTS = (PAGE_BYTES, PAGE_BYTES + SLOT_BYTES)
_WORDS = tuple(start // 8 for start in _SLOTS)
"""Where each slot's value is, in words of eight bytes, its complement right after."""
_TICKS = tuple(start + 16 for start in _SLOTS)
"""Where its ticks begin."""

logger = logging.getLogger(__name__)


class Taken:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            file = path.open("r+b")
        except FileNotFoundError:
            raise _broken(path, "missing") from None
        with file:
            if os.fstat(file.fileno()).st_size != FILE_BYTES or file.read(8) != MAGIC:
                raise _broken(path, "corrupt: it is not as it was made")
            self._map = mmap.mmap(file.fileno(), FILE_BYTES)
        self._bytes = memoryview(self._map)
        self._words = self._bytes.cast("Q")
        self._ticks = tuple(self._bytes[start : start + TICKS] for start in _TICKS)
        self._unheeded = memoryview(bytearray(TICKS))
        """For stretches that were taken before."""
        values = [(self._value_of(slot), slot) for slot in (0, 1) if self._fits(slot)]
        if not values:
            self.close()
            raise _broken(path, "corrupt: neither of its two values fits its complement")
        self._slot = max(values)[1]
        if len(values) == 1 and not self._half_done(1 - self._slot):
            logger.warning(
                "%s: one of its two values is damaged, and the other one counts: what was taken "
                "last may be handed out again",
                path,
            )

    @staticmethod
    def create(path: Path) -> None:
        """Zero. The file is really written: storing into a hole on a full disk would kill us."""
        zero = ((0).to_bytes(8) + _ALL_ONES.to_bytes(8)).ljust(SLOT_BYTES, b"\0")
        with path.open("wb") as file:
            file.write(MAGIC.ljust(PAGE_BYTES, b"\0") + zero + zero)
            file.flush()
            os.fsync(file.fileno())

    @staticmethod
    def check_unused(path: Path) -> None:
        """There is nothing that could have been taken. One that was half made does not matter."""
        value = 0
        with contextlib.suppress(JournalError):
            counter = Taken(path)
            value = counter.value
            counter.close()
        if value:
            why = f"there, says that {value} messages were taken, and all else is gone"
            raise _broken(path, why)

    @property
    def value(self) -> int:
        return self._value_of(self._slot)

    def mark(self, value: int) -> None:
        """Set it, if it grows."""
        if value > self.value:
            self._store(value, ticked=0)

    def begin(self, before: int, count: int) -> memoryview:
        """A stretch of so many messages after position `before`: a 1 stored at the place of one,
        from 0, says that it and all before it are taken."""
        ticked = max(0, self.value - before)
        if ticked >= count:
            return self._unheeded
        self._store(before, ticked)
        return self._ticks[self._slot]

    def lower(self, value: int) -> None:
        """Set it in any case: what was taken is not known any more."""
        self._store(value, ticked=0)
        self._store(value, ticked=0)

    def sync(self) -> None:
        self._map.flush()

    def close(self) -> None:
        """Whoever still ticks messages off, as one that was killed in their midst, keeps the map
        for as long as it is there itself."""
        with contextlib.suppress(BufferError):
            for view in (*self._ticks, self._words, self._bytes):
                view.release()
            self._map.close()

    def _store(self, value: int, ticked: int) -> None:
        slot = 1 - self._slot
        words, place, ticks = self._words, _WORDS[slot], self._ticks[slot]
        words[place + 1] = words[place]  # it fits no more until all of it is there
        if ticked or ticks[0]:  # they go from the first one on: without it there are none
            ticks[:] = bytes((1,)) * ticked + bytes(TICKS - ticked)
        words[place] = value
        words[place + 1] = value ^ _ALL_ONES
        self._slot = slot

    def _value_of(self, slot: int) -> int:
        if not self._ticks[slot][0]:
            return self._words[_WORDS[slot]]
        start = _TICKS[slot]
        end = self._map.find(b"\0", start, start + TICKS)
        return self._words[_WORDS[slot]] + (TICKS if end < 0 else end - start)

    def _fits(self, slot: int) -> bool:
        place = _WORDS[slot]
        rest = bytes(self._ticks[slot]).lstrip(b"\1").strip(b"\0")
        return not rest and self._words[place] ^ self._words[place + 1] == _ALL_ONES

    def _half_done(self, slot: int) -> bool:
        """As a kill leaves it: where the complement should be, there is the value before."""
        return self._words[_WORDS[slot] + 1] < 2**56


def _broken(path: Path, why: str) -> JournalError:
    return JournalError(
        f"{path} is {why}; restore the directory {path.parent} from a backup of the same moment, "
        "or give the member up (see “A broken journal” in the documentation)"
    )
