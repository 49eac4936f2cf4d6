"""A perfect link on top of connections that break: the pure state of one end. No sockets, no clock.

Guarantees  every packet handed to one end comes out of the other once, in the order it was
            handed over, for as long as both ends live and connections keep being made.
Assumes     one connection at a time, which keeps order and loses only by breaking.
Costs       one number per frame and one count; memory for what is not acknowledged yet.

    on put(p):              sent += 1; retain (sent, p)
    on connection:          both write received and sent, and the sent that they started with;
                            on the peer's r: forget up to r, everything else is to be written again
    on (number, p):         number <= received: a resend that was not needed, drop it
                            number = received + 1: received += 1, hand p up
                            otherwise: the peer skipped one
    on acknowledgement r:   forget up to r
    on commit:              what was put so far may be written, what was received acknowledged

Nothing leaves before the journal has what caused it: hence the commit. A peer that has forgotten
what it acknowledged or sent, as after a loss of power, or when its journal was put back from a
copy, would give new packets numbers that we know others by: it is not let in again.
"""

from __future__ import annotations

from collections import deque

from ordercast.errors import PeerError
from ordercast.runtime.frames import Ack, Data

__all__ = ["ACK_EVERY", "ForgetfulPeerError", "Link"]

ACK_EVERY = 64
"""So many packets are acknowledged at once; fewer wait a little for a Data frame to ride on."""
FRAME_BYTES = 64 * 2**10
"""About as many bytes of packets go into one frame, if there are as many. A full bundle has more,
and none joins it: two would not fit into the buffer of whoever reads them."""


class ForgetfulPeerError(PeerError):
    """It has lost a part of what it knew, and would never find out by itself."""


class Link:
    __slots__ = (
        *("_flying", "_waiting", "acknowledged", "arrived", "bytes", "cleared", "deserted"),
        *("known", "open", "received", "safe", "sent", "session", "told", "written"),
    )

    def __init__(self) -> None:
        self.deserted = False
        """Whether there is nobody at the other end any more."""
        self.open = False
        self.sent = 0
        self.acknowledged = 0
        self.arrived = 0
        """How many have come; what is `received` has been seen to as well."""
        self.received = 0
        self.bytes = 0
        """Of what is not acknowledged."""
        self.cleared = 0
        """Up to this number packets may leave."""
        self.safe = 0
        """Up to this number what was received may be acknowledged."""
        self.known = 0
        """How many were sent before this member started for the last time."""
        self.session = ""
        """Of the peer: what it was called when we last heard of it. A new one with each start."""
        self.told = 0
        """Up to this number what was received is acknowledged."""
        self.written = 0
        """Up to this number packets are on the connection of now, or were acknowledged before."""
        self._waiting: deque[bytes] = deque()
        """Not written on the connection of now."""
        self._flying: deque[bytes] = deque()
        """Written on it, and not acknowledged."""

    @property
    def unacknowledged(self) -> int:
        return len(self._flying) + len(self._waiting)

    def put(self, packet: bytes) -> None:
        self.sent += 1
        if self.deserted:
            self.acknowledged = self.written = self.sent
            return
        self.bytes += len(packet)
        self._waiting.append(packet)

    def commit(self, sent: int, received: int) -> None:
        self.cleared = sent
        self.safe = received

    def greet(self) -> tuple[int, int]:
        """For our hello on a new connection: what we have, and how many we have numbered."""
        self.told = self.safe
        return self.safe, self.sent

    def resume(self, received: int, sent: int, session: str = "", known: int = 0) -> None:
        """The peer's hello on a new connection says what it has. An older one is dead to it."""
        kept = sent if session == self.session else known
        if kept < self.received:
            raise ForgetfulPeerError(
                f"it knows of {kept} packets that it sent, and we have {self.received} of them"
            )
        if received < self.acknowledged:
            raise ForgetfulPeerError(_unlearnt(received, self.acknowledged))
        self._check(received)
        self.cut()
        self._forget(received)
        self.open = True

    def cut(self) -> None:
        """The connection is gone, and whatever was on it."""
        self.open = False
        self.arrived = self.received
        self.written = self.acknowledged
        self._waiting.extendleft(reversed(self._flying))
        self._flying.clear()

    def clear(self) -> None:
        """There is nobody at the other end any more: keep nothing for them, now or later."""
        self.deserted = True
        self.cut()
        self._waiting.clear()
        self.acknowledged = self.written = self.sent
        self.bytes = 0

    def next_frame(self, *, hurry: bool = False) -> Data | None:
        """The next frame to write, if the connection is open and anything may leave."""
        before, waiting = self.written, self._waiting
        ready = self.cleared - before
        if ready <= 0 or not self.open:
            return None
        packets = [waiting.popleft()]
        if ready > 1:
            size = len(packets[0])
            while size < FRAME_BYTES and len(packets) < ready:
                packets.append(waiting.popleft())
                size += len(packets[-1])
        self._flying.extend(packets)
        self.written = before + len(packets)
        self.told = self.safe
        return Data(before + 1, packets, self.safe, hurry)

    def receive(self, data: Data) -> list[bytes]:
        """The packets of a frame that have not come before; each is `received` when seen to."""
        if data.number > self.arrived + 1:
            raise PeerError(f"packet {data.number} came where {self.arrived + 1} was expected")
        self._forget(data.received)
        packets = data.packets[self.arrived + 1 - data.number :]
        self.arrived += len(packets)
        return packets

    def acknowledge(self, ack: Ack) -> None:
        self._forget(ack.received)

    @property
    def owes_ack(self) -> bool:
        return self.safe > self.told

    @property
    def owes_ack_now(self) -> bool:
        return self.safe - self.told >= ACK_EVERY

    def ack(self) -> Ack:
        """The acknowledgement to write now; a sign of life, if it says nothing new."""
        self.told = self.safe
        return Ack(self.safe)

    def _forget(self, received: int) -> None:
        """What it has may have come on an older connection, before it was written on this one."""
        news = received - self.acknowledged
        if not news:
            return
        self._check(received)
        for _ in range(news):
            self.bytes -= len((self._flying or self._waiting).popleft())
        self.acknowledged = received
        if received > self.written:
            self.written = received

    def _check(self, received: int) -> None:
        if received > self.sent:
            raise PeerError(f"it claims to have {received} packets and was sent {self.sent}")
        if received < self.acknowledged:
            raise PeerError(_unlearnt(received, self.acknowledged))


def _unlearnt(received: int, acknowledged: int) -> str:
    return f"it claims to have {received} packets and had acknowledged {acknowledged}"
