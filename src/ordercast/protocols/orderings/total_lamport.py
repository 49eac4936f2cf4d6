"""Total order from Lamport's ticket queue: ask everyone, wait for all, then speak.

Guarantees  all processes deliver in the order of the tickets, which extends causality.
Assumes     perfect FIFO links; nobody crashes.
Costs       a request, an acknowledgement and a release for each other process: 3(n-1) messages
            and three network delays; one ticket per message. Non-addressees get an empty release.
            One message at a time in the whole group: each waits a network delay for every other
            that is before it in the queue.
Permits     when anyone crashes nothing more is delivered: everyone's word is needed. Nobody
            delivers wrongly.
Source      L. Lamport, "Time, clocks, and the ordering of events in a distributed system",
            CACM 21(7), 1978; source text 002, which leaves out the tie-break: equal times are
            ordered by process.

    on send(m) to Q:            C += 1; enter ticket (C, i) in the queue; request (C, i) of all
    on request t from j:        C = max(C, time of t) + 1; enter t; acknowledge t to j
    on all acknowledgements, when our ticket is first in the queue:
                                release it: m to Q, an empty message to the others
    on release (t, m):          mark t released; while the first ticket of the queue is released:
                                remove it; deliver its message unless empty

The acknowledgement of j arrives after every smaller ticket of j, because links are FIFO. A
release may overtake an earlier one from another process; the ticket at the head of the queue,
which we acknowledged before it could be released, keeps it waiting.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Count, Held, Message, Process

__all__ = ["Acknowledge", "Release", "Request", "Ticket", "TotalLamport"]


class Ticket(NamedTuple):
    """Compared by time first, and then by process: the tie-break."""

    time: Count
    process: Process


class Request(Struct, frozen=True, array_like=True, tag="tl_request"):
    ticket: Ticket


class Acknowledge(Struct, frozen=True, array_like=True, tag="tl_ack"):
    ticket: Ticket


class Release(Struct, frozen=True, array_like=True, tag="tl_release"):
    ticket: Ticket
    message: Message | None


class TotalLamport(Ordering):
    items = Request | Acknowledge | Release
    needs_direct = True
    needs_fifo = True

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.others = self.all_but(me)
        self.clock = 0
        self.queue: list[Ticket] = []
        """A heap of every ticket that is requested and not yet delivered."""
        self.released: dict[Ticket, Message | None] = {}
        self.outgoing: deque[tuple[Ticket, Message]] = deque()
        self.acknowledged: dict[Ticket, set[int]] = {}

    def send(self, message: Message) -> Iterable[Effect]:
        self.clock += 1
        ticket = Ticket(self.clock, self.me)
        heapq.heappush(self.queue, ticket)
        self.outgoing.append((ticket, message))
        self.acknowledged[ticket] = {self.me}
        yield Spread(Request(ticket), self.others)
        yield from self._proceed()

    def receive(self, source: int, item: Request | Acknowledge | Release) -> Iterable[Effect]:
        if isinstance(item, Request):
            yield from self._request(source, item.ticket)
        elif isinstance(item, Acknowledge):
            if item.ticket not in self.acknowledged:
                raise PeerError(f"process {source} acknowledges a ticket that nobody waits for")
            self.acknowledged[item.ticket].add(source)
        else:
            if item.ticket.process != source or item.ticket in self.released:
                raise PeerError(f"process {source} releases a ticket that it may not")
            self.released[item.ticket] = item.message
        yield from self._proceed()

    def _request(self, source: int, ticket: Ticket) -> Iterator[Effect]:
        if ticket.process != source:
            raise PeerError(f"process {source} asks with the ticket of {ticket.process}")
        self.clock = max(self.clock, ticket.time) + 1
        heapq.heappush(self.queue, ticket)
        yield Spread(Acknowledge(ticket), (source,))

    def _proceed(self) -> Iterator[Effect]:
        """Release our ticket if it is first and everyone agrees; deliver from the head."""
        while self.queue:
            first = self.queue[0]
            if self.outgoing and first == self.outgoing[0][0]:
                if len(self.acknowledged[first]) < self.size:
                    return
                yield from self._release()
            if first not in self.released:
                return
            heapq.heappop(self.queue)
            message = self.released.pop(first)
            if message is not None:
                yield Deliver(message)

    def _release(self) -> Iterator[Effect]:
        ticket, message = self.outgoing.popleft()
        del self.acknowledged[ticket]
        addressees = [q for q in self.others if message.addressed_to(q)]
        rest = [q for q in self.others if not message.addressed_to(q)]
        yield Spread(Release(ticket, message), tuple(addressees))
        yield Spread(Release(ticket, None), tuple(rest))
        self.released[ticket] = message if message.addressed_to(self.me) else None

    def held(self) -> Iterator[Held]:
        first = self.queue[0] if self.queue else None
        for ticket, message in self.outgoing:
            lacking = [q for q in self.others if q not in self.acknowledged[ticket]]
            waits_on = lacking or ([first.process] if first and first != ticket else [])
            yield Held(message.id, waits_on=tuple(waits_on))
        for released in self.released.values():
            if released is not None and first is not None:
                yield Held(released.id, waits_on=(first.process,))
