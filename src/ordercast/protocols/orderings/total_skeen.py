"""Total order by agreed stamps (Skeen): every destination proposes a time, the largest decides.

Guarantees  any two processes deliver the messages they share in the same order; any destinations.
            Neither FIFO nor causal order is promised.
Assumes     perfect links, not necessarily FIFO; participants stay up.
Costs       3k messages for k destinations (fewer by 3 if the sender is one of them), three
            network delays, one time per message.
Permits     when the sender crashes before the final stamp, or a destination before its proposal,
            the message stays tentative and later ones wait behind it. Nobody delivers wrongly.
Source      D. Skeen, described in K. Birman, T. Joseph, "Reliable communication in the presence
            of failures", ACM TOCS 5(1), 1987; source text 002, which leaves out the tie-break:
            equal times are ordered by process.

    on send(m) to Q:            C += 1; send (m, C) to Q
    on (m, T) from i:           C = max(C, T) + 1; enter m in the queue with C, tentative
                                propose C to i
    on all proposals for m:     final stamp = the largest; send it to Q
    on the final stamp F of m:  C = max(C, F); give m the stamp F, final
    whenever:                   while the message with the least stamp of the queue is final:
                                remove and deliver it
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Count, Held, Message, MessageId

__all__ = ["Announce", "Final", "Propose", "Stamp", "TotalSkeen"]


class Stamp(NamedTuple):
    """Compared by time first, and then by the message's sender and number: the tie-break."""

    time: int
    id: MessageId


class Announce(Struct, frozen=True, array_like=True, tag="ts_announce"):
    message: Message
    time: Count


class Propose(Struct, frozen=True, array_like=True, tag="ts_propose"):
    id: MessageId
    time: Count


class Final(Struct, frozen=True, array_like=True, tag="ts_final"):
    id: MessageId
    time: Count


class TotalSkeen(Ordering):
    items = Announce | Propose | Final
    needs_direct = True

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.clock = 0
        # The sender's part
        self.asked: dict[MessageId, set[int]] = {}
        self.largest: dict[MessageId, int] = {}
        self.addressees: dict[MessageId, tuple[int, ...]] = {}
        # The destination's part
        self.messages: dict[MessageId, Message] = {}
        self.stamps: dict[MessageId, Stamp] = {}
        self.final: set[MessageId] = set()
        self.queue: list[Stamp] = []
        """A heap of stamps; one that is no longer its message's stamp is passed over."""

    def send(self, message: Message) -> Iterable[Effect]:
        self.clock += 1
        to = tuple(message.addressees(self.size))
        self.asked[message.id] = set(to)
        self.largest[message.id] = 0
        self.addressees[message.id] = to
        return [Spread(Announce(message, self.clock), to)]

    def receive(self, source: int, item: Announce | Propose | Final) -> Iterable[Effect]:
        if isinstance(item, Announce):
            return self._announced(item)
        if isinstance(item, Propose):
            return self._proposed(source, item)
        return self._finalised(item)

    def _announced(self, item: Announce) -> Iterator[Effect]:
        id = item.message.id
        if id in self.messages:
            raise PeerError(f"{id} has come before")
        self.clock = max(self.clock, item.time) + 1
        self.messages[id] = item.message
        self._stamp(Stamp(self.clock, id))
        yield Spread(Propose(id, self.clock), (id.origin,))

    def _proposed(self, source: int, item: Propose) -> Iterator[Effect]:
        if source not in self.asked.get(item.id, ()):
            raise PeerError(f"process {source} proposes a time for {item.id} without being asked")
        self.asked[item.id].remove(source)
        self.largest[item.id] = max(self.largest[item.id], item.time)
        if not self.asked[item.id]:
            del self.asked[item.id]
            final = Final(item.id, self.largest.pop(item.id))
            yield Spread(final, self.addressees.pop(item.id))

    def _finalised(self, item: Final) -> Iterator[Effect]:
        if item.id not in self.messages or item.id in self.final:
            raise PeerError(f"{item.id} gets a final stamp that it cannot have")
        self.clock = max(self.clock, item.time)
        self.final.add(item.id)
        self._stamp(Stamp(item.time, item.id))
        while (first := self._first()) is not None and first.id in self.final:
            heapq.heappop(self.queue)
            self.final.remove(first.id)
            del self.stamps[first.id]
            yield Deliver(self.messages.pop(first.id))

    def _stamp(self, stamp: Stamp) -> None:
        if self.stamps.get(stamp.id) != stamp:
            self.stamps[stamp.id] = stamp
            heapq.heappush(self.queue, stamp)

    def _first(self) -> Stamp | None:
        while self.queue and self.stamps.get(self.queue[0].id) != self.queue[0]:
            heapq.heappop(self.queue)
        return self.queue[0] if self.queue else None

    def held(self) -> Iterator[Held]:
        first = self._first()
        for id in self.messages:
            if id in self.final and first is not None:
                yield Held(id, (first.id,))
            elif id.origin == self.me:
                yield Held(id, waits_on=tuple(sorted(self.asked.get(id, (self.me,)))))
            else:
                yield Held(id, waits_on=(id.origin,))
