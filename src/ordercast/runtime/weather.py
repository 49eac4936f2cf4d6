"""What the emulated network does to a packet on its way to a link.

TCP keeps order, so reordering is made in front of it: each packet is held back for a delay of
its own, and a later one with a shorter delay overtakes it, on one and the same link. What is
held back is *in the air*: a run is not at rest while there is any.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from msgspec import Struct

from ordercast.errors import UsageError

__all__ = ["Air", "Weather"]

SWAP_FLUSH_S = 2.0
"""How long the first of a pair waits for a second that may never be sent."""


class Weather(Struct, frozen=True, kw_only=True):
    delay_ms: tuple[float, float] = (0.0, 0.0)
    """Each packet is held back for a time drawn evenly from this range."""
    swap_pairs: bool = False
    """Of each two consecutive broadcasts of a process, every link gets the second one first
    (the emulation of source text 003). Delays, if any, come on top and may undo a swap."""

    def __post_init__(self) -> None:
        low, high = self.delay_ms
        if not 0 <= low <= high < 3_600_000:
            raise UsageError(f"a delay from {low} to {high} ms: give 0 <= min <= max < an hour")

    def __str__(self) -> str:
        low, high = self.delay_ms
        delayed = f"delays of {low:g} to {high:g} ms" if high else "no delays"
        return delayed + (", pairs swapped" if self.swap_pairs else "")


class Air:
    """The way from a node to one of its links.

    For a protocol that needs `fifo` links nothing overtakes anything: whenever a delay is over,
    the packet that has been in the air for longest lands. Each is still held back for a time
    within the range.
    """

    def __init__(
        self, weather: Weather, *, seed: str, hand: Callable[[bytes], None], fifo: bool = False
    ) -> None:
        if fifo and weather.swap_pairs:
            raise UsageError("pairs cannot be swapped on links that have to keep their order")
        self._weather = weather
        self._fifo = fifo
        self._random = random.Random(seed)
        self._hand = hand
        self._first_of_pair: bytes | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._delayed: dict[int, bytes] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._entered = 0

    @property
    def packets(self) -> int:
        """How many are in the air."""
        return len(self._delayed) + (self._first_of_pair is not None)

    def put(self, packet: bytes, *, broadcast: bool) -> None:
        """`broadcast` says that the packet carries a message that this process itself sends."""
        if not (broadcast and self._weather.swap_pairs):
            self._delay(packet)
        elif self._first_of_pair is None:
            self._first_of_pair = packet
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(SWAP_FLUSH_S, self.release_odd)
        else:
            self._delay(packet)
            self.release_odd()

    def release_odd(self) -> None:
        """No second one is coming: let go of a first one that waits for it."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        if self._first_of_pair is not None:
            packet, self._first_of_pair = self._first_of_pair, None
            self._delay(packet)

    def flush(self) -> None:
        """Hand over all that is in the air, now."""
        self.release_odd()
        for entry in list(self._timers):
            self._timers[entry].cancel()
            self._land(entry)

    def _delay(self, packet: bytes) -> None:
        low, high = self._weather.delay_ms
        if high == 0:
            self._hand(packet)
            return
        self._entered += 1
        delay_s = self._random.uniform(low, high) / 1000
        loop = asyncio.get_running_loop()
        self._delayed[self._entered] = packet
        self._timers[self._entered] = loop.call_later(delay_s, self._land, self._entered)

    def _land(self, entry: int) -> None:
        del self._timers[entry]
        self._hand(self._delayed.pop(next(iter(self._delayed)) if self._fifo else entry))
