"""How far an import is, as one measure: a log is read, and then put in order and written."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]


class Progress:
    """In bytes of the log, since that is all that is known before: reading it is the first half,
    and what comes then is the other, which takes about as long."""

    def __init__(self, size: int, advance: Callable[[int], None]) -> None:
        self._size, self._advance = size, advance
        self._read = self._told = 0

    def read(self, count: int) -> None:
        """So many more bytes."""
        self._read += count
        self._tell(self._read // 2)

    def arranged(self, share: float) -> None:
        """So much of the second half, from 0 to 1."""
        self._tell(int(self._size * (1 + share)) // 2)

    def _tell(self, done: int) -> None:
        if done > self._told:
            self._advance(done - self._told)
            self._told = done
