"""The timers of a member's protocol, on the loop.

A short one is meant to let company come. Whoever sends all the time has it before long, in a frame
that leaves anyway: so then it is put off. If someone waits for word, it ends now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ordercast.runtime.core import Core
from ordercast.runtime.outgoing import Outgoing

__all__ = ["Timers"]

RIDE_S = 0.006
"""How long a short one waits for a ride: several times as long as one should take to come, or it
would often end just before."""
CLOCK_S = 0.001
"""Timers of uvloop are rounded to this, and may end as much too early."""


class Timers:
    def __init__(self, core: Core, outgoing: Outgoing, on_end: Callable[[str], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._core = core
        self._outgoing = outgoing
        self._on_end = on_end
        self._running: dict[str, asyncio.TimerHandle] = {}
        self._ends: dict[str, float] = {}
        """When each of them should end, by the loop's clock."""
        self._short: dict[str, None] = {}
        """Those of them that only wait for company, in the order in which they were started."""
        self.hurried = False
        """Whether the next `start` ends the short ones: someone waits for word from us."""

    def __len__(self) -> int:
        """How many are running."""
        return len(self._running)

    def hurry(self) -> None:
        """Someone waits for word from us."""
        self.hurried = True

    def start(self, *, now: bool = True) -> None:
        """Those that the protocol has asked for; one of the same name is replaced. One that is up
        at once ends here, or without `now` with the next turn; the protocol may ask for more."""
        started, self._core.started = dict.fromkeys(self._core.started), []
        if self.hurried:
            started |= self._short
        short_s = 0.0 if self.hurried else RIDE_S if self._outgoing.keeps_sending() else None
        self.hurried = False
        time_s = self._loop.time()
        up: list[str] = []
        for name in started:
            self._short.pop(name, None)
            delay_s = self._delay_s(name, short_s)
            if delay_s is None:
                self._cancel(name)
            elif delay_s <= 0 and now:
                up.append(name)
            else:
                self.run(name, time_s, time_s + delay_s)
        for name in up:
            self._end(name)

    def _delay_s(self, name: str, short_s: float | None) -> float | None:
        """In how long it is to end; None if the protocol has let it end already."""
        delay_us = self._core.timers.get(name)
        if delay_us is None:
            return None
        delay_s = delay_us / 1e6
        if delay_s >= RIDE_S:
            return delay_s
        self._short[name] = None
        return delay_s if short_s is None else short_s

    def _cancel(self, name: str) -> None:
        running = self._running.pop(name, None)
        if running is not None:
            running.cancel()

    def run(self, name: str, now: float, end: float) -> None:
        """One that runs and is put off, as most are again and again, runs on to its old end, and
        from there to the new one: that costs the loop nothing."""
        running, before = self._running.get(name), self._ends.get(name, end)
        self._ends[name] = end
        if running is None or end < before:
            if running is not None:
                running.cancel()
            self._running[name] = self._loop.call_later(end - now, self._is_up, name)

    def end_all(self) -> None:
        """Now, whatever is left to wait."""
        for name in list(self._running):
            self._end(name)

    def stop(self) -> None:
        """None of them ends any more."""
        for timer in self._running.values():
            timer.cancel()
        self._running.clear()

    def _is_up(self, name: str) -> None:
        now, end = self._loop.time(), self._ends[name]
        if end - now > CLOCK_S:
            self._running[name] = self._loop.call_later(end - now, self._is_up, name)
        else:
            self._end(name)

    def _end(self, name: str) -> None:
        self._cancel(name)
        self._short.pop(name, None)
        self._on_end(name)
