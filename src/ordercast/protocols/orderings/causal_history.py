"""Causal broadcast with explicit dependencies: a message names the messages it must follow.

Guarantees  if send(m) happened before send(n), no process delivers n before m.
Assumes     perfect links, a fixed group, broadcasts only. Does not assume FIFO.
Costs       the ids of the direct dependencies (at most n of them), no extra messages or delay.
Source      source text 001, with two repairs: what was received and not delivered is no
            dependency (001 counts it, which over-constrains), and only direct dependencies
            travel (its optimisation chapter is empty), since the others follow by transitivity:
            L. Peterson, N. Buchholz, R. Schlichting, "Preserving and using context information
            in interprocess communication", ACM TOCS 7(3), 1989.

    on send(m):                 spread (m, F); F = {m}
    on receive((m, D), j):      wait until every d in D, and j's previous message, is delivered
                                deliver m; if m is not our own: F = F - D + {m}

F, the frontier, is what was delivered or sent here and is not yet covered by a later message.
Each message depends on its sender's previous one, directly or through others; so deliveries from
one process come in order, and a counter per process tells what is delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Held, Message, MessageId
from ordercast.protocols.parking import ParkingLot

__all__ = ["CausalHistory", "Dependent"]


class Dependent(Struct, frozen=True, array_like=True, tag="causal_history"):
    message: Message
    dependencies: tuple[MessageId, ...]


class CausalHistory(Ordering):
    items = Dependent
    destinations = "everyone"
    for_some = "causal_matrix"

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.frontier: set[MessageId] = set()
        self.delivered = [0] * size
        self.lot: ParkingLot[Dependent] = ParkingLot()

    def send(self, message: Message) -> Iterable[Effect]:
        item = Dependent(message, tuple(sorted(self.frontier)))
        self.frontier = {message.id}
        return [Spread(item)]

    def receive(self, source: int, item: Dependent) -> Iterable[Effect]:
        id = item.message.id
        if len(item.dependencies) > self.size or any(
            d.origin >= self.size for d in item.dependencies
        ):
            raise PeerError(f"{id} names dependencies that a group of {self.size} cannot have")
        if id.number <= self.delivered[id.origin]:
            raise PeerError(f"{id} has come before")
        for ready in self.lot.admit(id, item, self._lacks):
            self._note(ready)
            yield Deliver(ready.message)

    def held(self) -> Iterator[Held]:
        for id, item in self.lot.waiting.items():
            yield Held(id, tuple(self._missing(item)))

    def _note(self, item: Dependent) -> None:
        id = item.message.id
        self.delivered[id.origin] = id.number
        # One's own message entered the frontier when it was sent.
        if id.origin != self.me:
            self.frontier.difference_update(item.dependencies)
            self.frontier.add(id)

    def _lacks(self, item: Dependent) -> MessageId | None:
        return next(self._missing(item), None)

    def _missing(self, item: Dependent) -> Iterator[MessageId]:
        origin, number = item.message.id
        if number > self.delivered[origin] + 1:
            yield MessageId(origin, number - 1)
        for dependency in item.dependencies:
            if dependency.number > self.delivered[dependency.origin]:
                yield dependency
