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
        self._short: set[str] = set()
        """Those of them that only wait for company."""
        self.hurried = False
        """Whether nobody is to wait for company: `start`, even if there is nothing new."""

    def __len__(self) -> int:
        """How many are running."""
        return len(self._running)

    def hurry(self) -> None:
        """Someone waits for word from us."""
        self.hurried = True

    def start(self) -> None:
        """Those that the protocol has asked for; one of the same name is replaced. One that is up
        at once ends here and now, and the protocol may ask for more then."""
        started, self._core.started = self._core.started, []
        hurried, self.hurried = self.hurried, False
        if hurried:
            started += self._short
        now = self._loop.time()
        short_s = 0.0 if hurried else RIDE_S if self._outgoing.keeps_sending() else None
        up: list[str] = []
        for name in started:
            self._short.discard(name)
            delay_us = self._core.timers.get(name)
            if delay_us is None:
                if name in self._running:
                    self._running.pop(name).cancel()
                continue
            delay_s = delay_us / 1e6
            if delay_s < RIDE_S:
                self._short.add(name)
                delay_s = delay_s if short_s is None else short_s
            if delay_s > 0:
                self.run(name, now, now + delay_s)
            else:
                up.append(name)
        for name in up:
            self._end(name)

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
        running = self._running.pop(name, None)
        if running is not None:
            running.cancel()
        self._short.discard(name)
        self._on_end(name)
