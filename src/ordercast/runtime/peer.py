"""Another member as seen from here: its link, the air before it, its connection, its pulse."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import TOLD_BYTES_MAX, Ack
from ordercast.runtime.link import Link
from ordercast.runtime.rest import LinkCounters
from ordercast.runtime.weather import Air

if TYPE_CHECKING:
    from ordercast.runtime.connection import Connection
    from ordercast.runtime.detector import Detector

__all__ = ["Peer"]


class Peer:
    def __init__(
        self, index: int, name: str, link: Link, *, detector: Detector, air: Air | None
    ) -> None:
        self.index = index
        self.name = name
        self.link = link
        self.air = air
        self.detector = detector
        self.connection: Connection | None = None
        self.connections = 0
        """How many there have been."""
        self.lost_at: float | None = None
        """When the last one broke, by the loop's clock; None before that."""
        self.suspected = False
        self.dead = False
        """Declared so: it is not let in again."""
        self.refused: str | None = None
        """What it said when it hung up for good."""
        self.address: Address | None = None
        """Where it is, as far as is known."""
        self.hellos_missed = 0
        """How often in a row it was there when it was dialled, and said nothing."""
        self.trouble: str | None = None
        """What stood in the way of the last attempt to connect with it."""
        self.told: str | None = None
        """What the log says by now of how it turns us down."""
        self.spoke = False
        """Something has come from it since the last heartbeat."""
        self.silent = True
        """Nothing was written to it since the last heartbeat."""
        self.waits_for = 0
        """Its application waits to hear from us what became of its bundles up to this one."""
        self.reported = 0
        """What it was last told of how many of its bytes the application here has taken."""
        self.reported_at = 0.0
        """When, by the loop's clock."""
        self.told_bytes = TOLD_BYTES_MAX
        """It is told when so much more of them was taken; it says how much when it is met."""
        self.stuck_since: float | None = None
        """Since when it has been silent, or the one that others wait for."""
        self._news: asyncio.Event | None = None
        """For one who waits until everything is acknowledged."""

    def counters(self) -> LinkCounters:
        link = self.link
        in_air = self.air.packets if self.air is not None else 0
        return LinkCounters(link.sent, link.received, in_air, link.unacknowledged)

    def attach(self, connection: Connection) -> None:
        """The newest connection wins: the peer made it because the one before is dead to it."""
        before, self.connection = self.connection, connection
        self.connections += 1
        self.hellos_missed = 0
        if before is not None:
            before.abort()

    def detach(self, connection: Connection) -> bool:
        """That connection is gone; says whether it was the one in use."""
        if self.connection is not connection:
            return False
        self.connection = None
        self.lost_at = asyncio.get_running_loop().time()
        self.link.cut()
        self.news()
        return True

    def broken_s(self, now: float) -> float:
        """For how long its connection has been broken; 0 if it is there, or never was."""
        if self.connection is not None or self.lost_at is None:
            return 0.0
        return now - self.lost_at

    def acknowledged(self, ack: Ack) -> None:
        self.link.acknowledge(ack)
        self.news()

    def pump(self, *, hurry: bool = False) -> None:
        """Write what may leave, as far as the connection takes it."""
        connection, link = self.connection, self.link
        while connection is not None and connection.writable and link.cleared > link.written:
            frame = link.next_frame(hurry=hurry)
            if frame is None:
                return
            connection.write(frame)
            self.silent = False

    def acknowledge(self) -> None:
        """Tell the peer what is safe here, or just that we are alive."""
        if self.connection is not None and self.link.open and self.connection.writable:
            self.connection.write(self.link.ack())
            self.silent = False

    async def settled(self) -> None:
        """Wait until the peer has acknowledged everything, or cannot because it is away."""
        self._news = self._news or asyncio.Event()
        while self.link.open and self.link.unacknowledged:
            self._news.clear()
            await self._news.wait()

    def news(self) -> None:
        """It may have acknowledged something, or have gone."""
        if self._news is not None:
            self._news.set()
