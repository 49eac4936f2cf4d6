"""What the page of a live run is told: kept by the launcher's thread, read by the server's.

A stream of events begins with all that is still in sight, and goes on with what is new. The board
decides how much a page can draw: of more, only every second, fourth, … message is told.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any, Literal

from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.runtime.control import Moment
from ordercast.runtime.hands import Hands
from ordercast.runtime.holds import Hold
from ordercast.runtime.looks import Look, MemberLook

__all__ = ["Board", "Cursor", "Verdicts"]

SIGHT_US = 20_000_000
"""So much of the past is told to whoever comes late."""
SIGHT_MOMENTS = 12_000
DRAWN_A_SECOND = 150
"""Deliveries that a page can draw, and an eye can follow."""

PACE_US = 500_000
"""How often it is looked at how much that is."""

Phase = Literal["starting", "running", "finishing", "judging"]


class Verdicts(Struct, frozen=True):
    """The end of the story."""

    html: str | None
    failure: str | None
    """Why there are no verdicts, if there are none."""


class Cursor(Struct):
    """How far one stream is."""

    moments: int = 0
    happened: int = 0
    version: int = -1


class Board:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hands: Hands | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._phase: Phase = "starting"
        self._zero_us = 0
        self._look: Look | None = None
        self._moments: deque[tuple[int, Moment]] = deque()
        self._forgotten = 0
        """How many moments have left the deque, ever."""
        self._version = 0
        self._pace = _Pace()
        self.verdicts: Verdicts | None = None

    # What the launcher calls: this is an `Audience`.

    def begin(self, hands: Hands) -> None:
        with self._lock:
            self._hands, self._loop = hands, asyncio.get_running_loop()
            self._phase = "running"
            self._zero_us = time.time_ns() // 1000

    def see(self, look: Look) -> None:
        with self._lock:
            self._look = look
            self._phase = "finishing" if look.finishing else "running"
            self._version += 1
            every = self._pace.every_for(look)
            self._moments.extend(moment for moment in look.moments if moment[1].number % every == 0)
            while self._moments and (
                len(self._moments) > SIGHT_MOMENTS
                or self._moments[0][1].time_us < look.time_us - SIGHT_US
            ):
                self._moments.popleft()
                self._forgotten += 1

    # What the command calls.

    def run_is_over(self) -> None:
        """Its trace is going to be judged."""
        with self._lock:
            self._phase, self._hands = "judging", None
            self._version += 1

    def conclude(self, verdicts: Verdicts) -> None:
        self.verdicts = verdicts

    # What the server calls.

    async def act(self, what: str, process: int | None) -> None:
        """Have it done in the launcher's loop; a `UsageError` says why it cannot be."""
        with self._lock:
            if self._hands is None or self._loop is None:
                raise UsageError("there is no group to do that to at this moment")
            doing: Coroutine[Any, Any, None] = self._hands.act(what, process)
            future = asyncio.run_coroutine_threadsafe(doing, self._loop)
        try:
            await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if not future.cancelled():  # it is the server that ends
                raise
            raise UsageError("the run has ended meanwhile") from None

    def news(self, cursor: Cursor) -> dict[str, Any] | None:
        """What a stream has yet to tell; None if there is nothing."""
        with self._lock:
            if cursor.version == self._version:
                return None
            cursor.version = self._version
            look = self._look
            start = max(cursor.moments - self._forgotten, 0)
            moments = [self._moments[place] for place in range(start, len(self._moments))]
            cursor.moments = self._forgotten + len(self._moments)
            happened = look.happened[cursor.happened :] if look is not None else ()
            cursor.happened += len(happened)
            return {
                "phase": self._phase,
                "zero": self._zero_us,
                "now": look.time_us if look is not None else 0,
                "every": self._pace.every,
                "members": [_member(member) for member in look.members] if look is not None else [],
                "moments": [
                    (process, moment.kind, moment.time_us, moment.origin, moment.number)
                    for process, moment in moments
                ],
                "troubles": [
                    (trouble.process, trouble.ill, trouble.since_us, trouble.until_us)
                    for trouble in (look.troubles if look is not None else ())
                ],
                "happened": [{"at": each.at_us, "what": each.what} for each in happened],
            }


class _Pace:
    """Of which messages a page is told, so that it can keep up: multiples of a power of two."""

    def __init__(self) -> None:
        self.every = 1
        self._since_us = 0
        self._deliveries = 0

    def every_for(self, look: Look) -> int:
        self._deliveries += sum(
            look.every for _, moment in look.moments if moment.kind == "deliver"
        )
        if look.time_us - self._since_us >= PACE_US:
            rate = self._deliveries * 1e6 / max(look.time_us - self._since_us, 1)
            self._since_us, self._deliveries = look.time_us, 0
            while rate / self.every > DRAWN_A_SECOND:
                self.every *= 2
            while self.every > 1 and rate / self.every < DRAWN_A_SECOND / 3:
                self.every //= 2
        self.every = max(self.every, look.every)
        return self.every


def _member(member: MemberLook) -> dict[str, Any]:
    return {
        "state": member.state,
        "cut": member.cut,
        "suspected_by": member.suspected_by,
        "sent": member.sent,
        "delivered": member.delivered,
        "held": member.held,
        "bundles": member.bundles,
        "stable": member.stable,
        "holds": [_hold(hold) for hold in member.holds],
    }


def _hold(hold: Hold) -> dict[str, Any]:
    what, _, why = str(hold).partition(" ")
    return {"what": what, "why": why, "since": hold.since_us}
