"""A perfect link on top of connections that break: the pure state of one end. No sockets, no clock.

Guarantees  every packet handed to one end comes out of the other once, in the order it was
            handed over, for as long as both ends live and connections keep being made.
Assumes     one connection at a time, which keeps order and loses only by breaking.
Costs       one number and one count per packet; memory for what is not acknowledged yet.

    on send(p):             sent += 1; retain (sent, p); if open: write (sent, p)
    on connection:          both write received; on the peer's r: forget up to r, write the rest
    on (number, p):         number <= received: a resend that was not needed, drop it
                            number = received + 1: received += 1, hand p up
                            otherwise: the peer skipped one
    on acknowledgement r:   forget up to r

A peer that has forgotten what it acknowledged, or acknowledges what was never sent, is another
process in the place of the one we knew: its connection must not be used.
"""

from __future__ import annotations

from collections import deque

from ordercast.errors import PeerError
from ordercast.runtime.frames import Ack, Data

__all__ = ["ACK_EVERY", "Link"]

ACK_EVERY = 64
"""So many packets are acknowledged at once; fewer wait a little for a Data frame to ride on."""


class Link:
    def __init__(self) -> None:
        self.open = False
        self.sent = 0
        self.acknowledged = 0
        self.received = 0
        self._told = 0
        self._retained: deque[bytes] = deque()

    @property
    def unacknowledged(self) -> int:
        return len(self._retained)

    def send(self, packet: bytes) -> Data | None:
        """Take a packet on; the frame to write, or None while there is no connection."""
        self.sent += 1
        self._retained.append(packet)
        return self._data(self.sent, packet) if self.open else None

    def greet(self) -> int:
        """The count for our hello on a new connection."""
        self._told = self.received
        return self.received

    def resume(self, received: int) -> list[Data]:
        """The peer's hello on a new connection says what it has; the frames to write first."""
        self._forget(received)
        self.open = True
        first = self.acknowledged + 1
        return [self._data(number, packet) for number, packet in enumerate(self._retained, first)]

    def cut(self) -> None:
        """The connection is gone, and whatever was on it."""
        self.open = False

    def receive(self, data: Data) -> bytes | None:
        """The packet, or None if it has been here before."""
        if data.number > self.received + 1:
            raise PeerError(f"packet {data.number} came where {self.received + 1} was expected")
        self._forget(data.received)
        if data.number <= self.received:
            return None
        self.received += 1
        return data.packet

    def acknowledge(self, ack: Ack) -> None:
        self._forget(ack.received)

    @property
    def owes_ack(self) -> bool:
        return self.received > self._told

    @property
    def owes_ack_now(self) -> bool:
        return self.received - self._told >= ACK_EVERY

    def ack(self) -> Ack:
        """The acknowledgement to write now."""
        self._told = self.received
        return Ack(self.received)

    def _data(self, number: int, packet: bytes) -> Data:
        self._told = self.received
        return Data(number, packet, self.received)

    def _forget(self, received: int) -> None:
        if received > self.sent:
            raise PeerError(f"it claims to have {received} packets and was sent {self.sent}")
        if received < self.acknowledged:
            raise PeerError(
                f"it claims to have {received} packets and had acknowledged {self.acknowledged}"
            )
        while self.acknowledged < received:
            self._retained.popleft()
            self.acknowledged += 1
