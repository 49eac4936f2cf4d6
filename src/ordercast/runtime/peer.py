"""Another member as seen from here: the air before its link, the link, the connection of now."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from ordercast.runtime.frames import Ack, Data
from ordercast.runtime.link import Link
from ordercast.runtime.rest import LinkCounters
from ordercast.runtime.weather import Air, Weather

if TYPE_CHECKING:
    from ordercast.runtime.connection import Connection

__all__ = ["Peer", "keep_connected"]

ACK_DELAY_S = 0.005
BACKOFF_S_MIN = 0.02
BACKOFF_S_MAX = 1.0
CONNECT_TIMEOUT_S = 5.0


class Peer:
    def __init__(self, index: int, *, weather: Weather, fifo: bool, seed: str) -> None:
        self.index = index
        self.link = Link()
        self.air = Air(weather, fifo=fifo, seed=seed, hand=self._hand_over)
        self.connection: Connection | None = None
        self._ack_timer: asyncio.TimerHandle | None = None
        self._news = asyncio.Event()

    def counters(self) -> LinkCounters:
        link = self.link
        return LinkCounters(link.sent, link.received, self.air.packets, link.unacknowledged)

    def attach(self, connection: Connection) -> None:
        """The newest connection wins: the peer made it because the one before is dead to it."""
        before, self.connection = self.connection, connection
        if before is not None:
            before.abort()

    def detach(self, connection: Connection) -> bool:
        """That connection is gone; says whether it was the one in use."""
        if self.connection is not connection:
            return False
        self.connection = None
        self.link.cut()
        self._stop_ack_timer()
        self._news.set()
        return True

    def receive(self, data: Data) -> bytes | None:
        packet = self.link.receive(data)
        self._news.set()
        return packet

    def acknowledged(self, ack: Ack) -> None:
        self.link.acknowledge(ack)
        self._news.set()

    def acknowledge_soon(self) -> None:
        if self.link.owes_ack_now:
            self._acknowledge()
        elif self.link.owes_ack and self._ack_timer is None:
            loop = asyncio.get_running_loop()
            self._ack_timer = loop.call_later(ACK_DELAY_S, self._acknowledge)

    async def settled(self) -> None:
        """Wait until the peer has acknowledged everything, or cannot because it is away."""
        while self.link.open and self.link.unacknowledged:
            self._news.clear()
            await self._news.wait()

    async def writable(self) -> None:
        if self.connection is not None:
            await self.connection.writable.wait()

    def close(self) -> None:
        self.air.flush()
        if self.connection is not None:
            self._acknowledge()
            self.connection.close()

    def _hand_over(self, packet: bytes) -> None:
        frame = self.link.send(packet)
        if frame is not None and self.connection is not None:
            self.connection.write(frame)

    def _acknowledge(self) -> None:
        self._stop_ack_timer()
        if self.link.owes_ack and self.connection is not None:
            self.connection.write(self.link.ack())

    def _stop_ack_timer(self) -> None:
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None


async def keep_connected(dial: Callable[[], Awaitable[Connection]], jitter: random.Random) -> None:
    """Dial, and dial again whenever the connection is gone, until cancelled."""
    pauses = _pauses_s(jitter)
    while True:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                connection = await dial()
        except OSError:  # not there yet, or not any more; a timeout is one as well
            pass
        else:
            await connection.gone.wait()
            if connection.greeted:
                pauses = _pauses_s(jitter)
        await asyncio.sleep(next(pauses))


def _pauses_s(jitter: random.Random) -> Iterator[float]:
    """Twice as long each time, up to a limit; never quite the same for two members."""
    pause_s = BACKOFF_S_MIN
    while True:
        yield pause_s * jitter.uniform(0.5, 1)
        pause_s = min(2 * pause_s, BACKOFF_S_MAX)
