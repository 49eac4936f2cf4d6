"""Lines about what may come again and again: one of each kind now and then, and how many it stands
for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Sparing"]

LOG_EVERY_S = 10.0
"""For each kind, a line at most so often."""


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class Sparing:
    """Kinds are few: whoever is behind what comes has no say in them."""

    def __init__(self, *, clock: Callable[[], float] = _loop_time) -> None:
        self._clock = clock
        self._told: dict[str | tuple[str, str], tuple[float, int]] = {}
        """When the last line was, and how many there would have been since."""

    def end_of_line(self, kind: str | tuple[str, str]) -> str | None:
        """How a line on one more of its kind ends; None if there was such a line lately."""
        now = self._clock()
        told_at, passed = self._told.get(kind, (now - LOG_EVERY_S, 0))
        if now - told_at < LOG_EVERY_S:
            self._told[kind] = told_at, passed + 1
            return None
        self._told[kind] = now, 0
        return f"; {passed} more like it since the last such line" if passed else ""
