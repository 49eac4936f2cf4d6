"""Uniform broadcast: forward once, and count on a message only when a majority has forwarded it.

Guarantees  if any process delivers a message, even one that crashes right after, all correct
            processes do; each message once.
Assumes     perfect links; fewer than half of the processes crash.
Costs       at most n(n-1) copies; two network delays; the forwarders' names per copy.
Source      source texts 000 and 001; R. Guerraoui, L. Rodrigues, "Introduction to Reliable
            Distributed Programming", 2006, majority-ack uniform reliable broadcast.

    on spread(m):               forwarders[m] = {i}; transmit (m, {i}) to everyone else
    on receive((m, F), j):      forwarders[m] += F + {j}
                                if m is new and forwarders[m] is no quorum:
                                    forwarders[m] += {i}; transmit (m, forwarders[m]) to the others
    when forwarders[m] is a quorum: m arrives

The forwarders travel with the message; whoever sees that they are a quorum already stays silent
(the first improvement that 000 names). Then someone who heard only part of it may lack a quorum
for ever, if forwarders crashed in the middle: so a process asks about what has waited too long,
and whoever has counted on it answers.

    on timer, m still waiting:  ask everyone about m
    on ask(m) from j:           as soon as m has arrived here: confirm m to j
    on confirm(m):              m arrives

A quorum is a strict majority. The sources count on *at least half*, which is sound only while
fewer than half can crash: with n = 4 two holders may both be gone. The threshold is a parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct

from ordercast.errors import PeerError, UsageError
from ordercast.protocols.effects import Arrive, Effect, StartTimer, Transmit
from ordercast.protocols.interface import Dissemination
from ordercast.protocols.messages import Held, MessageId, Process, id_of
from ordercast.protocols.received import Received

__all__ = ["Ask", "Confirm", "Copy", "Majority"]

Item = TypeVar("Item")
PATIENCE_US = 200_000
ASK = "majority: ask"


class Copy(Struct, Generic[Item], frozen=True, array_like=True, tag="maj_copy"):
    message: Item
    forwarders: tuple[Process, ...]


class Ask(Struct, frozen=True, array_like=True, tag="maj_ask"):
    ids: tuple[MessageId, ...]


class Confirm(Struct, frozen=True, array_like=True, tag="maj_confirm"):
    ids: tuple[MessageId, ...]


class Majority(Dissemination):
    destinations = "everyone"
    relays = True

    def __init__(self, me: int, size: int, *, threshold: int | None = None) -> None:
        super().__init__(me, size)
        self.threshold = size // 2 + 1 if threshold is None else threshold
        if not 1 <= self.threshold <= size:
            raise UsageError(f"a threshold of {threshold} makes no sense in a group of {size}")
        self.arrived = Received(size)
        self.items: dict[MessageId, Any] = {}
        self.forwarders: dict[MessageId, set[int]] = {}
        self.watching = False
        self.fresh: set[MessageId] = set()
        """What waits and began to after the timer was started."""
        self.overdue: set[MessageId] = set()
        """What was waiting already when the timer was started, and still is."""
        self.askers: dict[MessageId, set[int]] = {}
        """Who wants to know of a message that has not arrived here either."""

    @staticmethod
    def packets(items: Any) -> Any:
        return Copy[items] | Ask | Confirm

    def spread(self, item: Any, to: tuple[int, ...] | None) -> Iterable[Effect]:
        return self._hear(item, {self.me}, forward=True)

    def receive(self, source: int, packet: Any) -> Iterable[Effect]:
        if isinstance(packet, Ask):
            return self._answer(source, packet.ids)
        if isinstance(packet, Confirm):
            return [effect for id in packet.ids for effect in self._settle(id)]
        if max(packet.forwarders, default=0) >= self.size:
            raise PeerError(f"process {source} names forwarders that are not in the group")
        if id_of(packet) in self.arrived:
            return []
        forwarders = {*packet.forwarders, source}
        return self._hear(packet.message, forwarders, forward=len(forwarders) < self.threshold)

    def timer(self, name: str) -> Iterable[Effect]:
        if name == ASK:
            self.watching = False
            if self.overdue:
                yield Transmit(self.all_but(self.me), Ask(tuple(sorted(self.overdue))))
            yield from self._watch()

    def _hear(self, item: Any, forwarders: set[int], *, forward: bool) -> Iterator[Effect]:
        id = id_of(item)
        if id not in self.items:
            self.items[id] = item
            self.forwarders[id] = forwarders
            self.fresh.add(id)
            if forward:
                self.forwarders[id].add(self.me)
                yield Transmit(
                    self.all_but(self.me), Copy(item, tuple(sorted(self.forwarders[id])))
                )
        self.forwarders[id] |= forwarders
        if len(self.forwarders[id]) >= self.threshold:
            yield from self._settle(id)
        yield from self._watch()

    def _settle(self, id: MessageId) -> Iterator[Effect]:
        if id in self.items:
            item = self.items.pop(id)
            del self.forwarders[id]
            self.arrived.add(id)
            self.fresh.discard(id)
            self.overdue.discard(id)
            for asker in sorted(self.askers.pop(id, ())):
                yield Transmit((asker,), Confirm((id,)))
            yield Arrive(id.origin, item)

    def _watch(self) -> Iterator[Effect]:
        """Each message that waits for a whole period is asked about once: links are perfect, so
        whoever can answer will, now or when it knows."""
        if not self.watching and self.fresh:
            self.watching = True
            self.overdue, self.fresh = self.fresh, set()
            yield StartTimer(ASK, PATIENCE_US)

    def _answer(self, source: int, ids: tuple[MessageId, ...]) -> Iterator[Effect]:
        if any(id.origin >= self.size for id in ids):
            raise PeerError(f"process {source} asks about messages of nobody in this group")
        known = tuple(id for id in ids if id in self.arrived)
        for id in ids:
            if id not in self.arrived:
                self.askers.setdefault(id, set()).add(source)
        if known:
            yield Transmit((source,), Confirm(known))

    def held(self) -> Iterator[Held]:
        for id, forwarders in self.forwarders.items():
            silent = tuple(p for p in range(self.size) if p not in forwarders)
            yield Held(id, waits_on=silent)
