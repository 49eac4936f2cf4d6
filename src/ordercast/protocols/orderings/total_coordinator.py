"""Total and causal order from a sequencer: one process decides the place of every message.

Guarantees  all processes deliver in one common sequence, which extends causality; any destinations.
Assumes     perfect links, not necessarily FIFO; the sequencer (process 0) stays up.
Costs       one copy to the sequencer, one from it to each destination; two network delays; one
            id per message.
Permits     when the sequencer crashes nothing more is delivered, and its last message may have
            reached some destinations and not others.
Source      source text 002, "total order: algorithm with a coordinator"; M. Kaashoek,
            A. Tanenbaum, "Group communication in the Amoeba distributed operating system",
            ICDCS 1991.

    on send(m) to Q:                spread m to the sequencer
    sequencer, on receive(m) of j:  wait until it has sequenced all of j's earlier messages
                                    for q in Q: spread (m, last[q]) to q; last[q] = m
    on receive((m, before)):        wait until before = the last message delivered here
                                    deliver m

A copy names the message before it in the sequence, as far as this destination is concerned,
instead of a place number: with subsets, places would have gaps that nobody can tell from losses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Held, Message, MessageId

__all__ = ["Request", "Sequenced", "TotalCoordinator"]

SEQUENCER = 0


class Request(Struct, frozen=True, array_like=True, tag="tc_request"):
    message: Message


class Sequenced(Struct, frozen=True, array_like=True, tag="tc_sequenced"):
    message: Message
    before: MessageId | None


class TotalCoordinator(Ordering):
    items = Request | Sequenced
    needs_direct = True
    relays = True

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        # The sequencer's part
        self.sequenced = [0] * size
        self.requests: list[dict[int, Message]] = [{} for _ in range(size)]
        self.last: list[MessageId | None] = [None] * size
        # Everyone's part
        self.delivered: MessageId | None = None
        self.early: dict[MessageId | None, Message] = {}
        self.awaited: set[MessageId] = set()

    @property
    def coordinator(self) -> int:
        return SEQUENCER

    def send(self, message: Message) -> Iterable[Effect]:
        if message.addressed_to(self.me):
            self.awaited.add(message.id)
        return [Spread(Request(message), (SEQUENCER,))]

    def receive(self, source: int, item: Request | Sequenced) -> Iterable[Effect]:
        if isinstance(item, Request):
            return self._sequence(item.message)
        if source != SEQUENCER:
            raise PeerError(f"process {source} sequences {item.message.id}, which it may not")
        return self._deliver(item)

    def _sequence(self, message: Message) -> Iterator[Effect]:
        origin, number = message.id
        if number <= self.sequenced[origin] or number in self.requests[origin]:
            raise PeerError(f"{message.id} has come before")
        self.requests[origin][number] = message
        while ready := self.requests[origin].pop(self.sequenced[origin] + 1, None):
            self.sequenced[origin] += 1
            yield from self._assign(ready)

    def _assign(self, message: Message) -> Iterator[Effect]:
        """Destinations with the same predecessor, all of them if only broadcasts are sent, share
        a copy."""
        places: dict[MessageId | None, list[int]] = {}
        for process in message.addressees(self.size):
            places.setdefault(self.last[process], []).append(process)
            self.last[process] = message.id
        for before, processes in places.items():
            yield Spread(Sequenced(message, before), tuple(processes))

    def _deliver(self, item: Sequenced) -> Iterator[Effect]:
        first = item.before is None
        if item.before in self.early or (first and self.delivered is not None):
            raise PeerError(f"{item.message.id} claims a place in the sequence that is taken")
        self.early[item.before] = item.message
        while message := self.early.pop(self.delivered, None):
            self.delivered = message.id
            self.awaited.discard(message.id)
            yield Deliver(message)

    def held(self) -> Iterator[Held]:
        for requests in self.requests:
            for message in requests.values():
                yield Held(message.id, (MessageId(message.id.origin, message.id.number - 1),))
        for before, message in self.early.items():
            yield Held(message.id, () if before is None else (before,))
        arrived = {message.id for message in self.early.values()}
        for id in self.awaited - arrived:
            yield Held(id, waits_on=(SEQUENCER,))
