"""What a member takes from its machine besides asyncio: a clock, chance, threads.

A loop may bring its own as an attribute, `surroundings`. That of `ordercast.testing` does: so a
group that runs there does the same again for the same seed.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable

__all__ = ["Surroundings", "surroundings"]


class Surroundings:
    """Those of a real process."""

    threads = True
    """Whether a thread may do something while the loop goes on."""

    def clock_us(self) -> int:
        """By which events are dated."""
        return time.time_ns() // 1000

    def token(self) -> str:
        """That nobody else has."""
        return secrets.token_hex(8)

    def on_kill(self, forget: Callable[[], None]) -> None:
        """What to call when this process is killed, if that does not take its files from it."""


_REAL = Surroundings()


def surroundings() -> Surroundings:
    """Those of the loop that is running, if one is."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _REAL
    found: Surroundings = getattr(loop, "surroundings", _REAL)
    return found
