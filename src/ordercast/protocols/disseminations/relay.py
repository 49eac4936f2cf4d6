"""Reliable broadcast: everyone forwards a message the first time it is seen.

Guarantees  if one correct process receives a message, all correct processes do, even if its
            sender crashed in the middle; each message once.
Assumes     perfect links.
Costs       at most (n-1) * (n-1) copies, at most one network delay when all goes well.
Permits     a process that crashes may have delivered what nobody else ever sees: not uniform.
Source      V. Hadzilacos, S. Toueg, "A modular approach to fault-tolerant broadcasts and related
            problems", 1994: the diffusion of reliable broadcast.

    on spread(m):           transmit m to everyone else; m arrives here
    on receive(m) from j:   if m is new: transmit m to everyone but its origin and j; m arrives
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ordercast.protocols.effects import Arrive, Effect, Transmit
from ordercast.protocols.interface import Dissemination
from ordercast.protocols.messages import id_of
from ordercast.protocols.received import Received

__all__ = ["Relay"]


class Relay(Dissemination):
    destinations = "everyone"
    relays = True

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.seen = Received(size)

    @staticmethod
    def packets(items: Any) -> Any:
        return items

    def spread(self, item: Any, to: tuple[int, ...] | None) -> Iterable[Effect]:
        self.seen.add(id_of(item))
        return [Transmit(self.all_but(self.me), item), Arrive(self.me, item)]

    def receive(self, source: int, packet: Any) -> Iterable[Effect]:
        id = id_of(packet)
        if id in self.seen:
            return []
        self.seen.add(id)
        return [
            Transmit(self.all_but(self.me, id.origin, source), packet),
            Arrive(id.origin, packet),
        ]
