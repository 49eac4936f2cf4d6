"""Synchronous order: messages as if each were sent and delivered at one and the same moment.

Guarantees  every message can be given a moment so that each process's own order agrees with the
            moments; there is no crown. Implies causal and FIFO order. Unicast only.
Assumes     perfect links, not necessarily FIFO; partners stay up.
Costs       two messages for a big one, three for a small one; the sender's next message waits.
Permits     a process whose partner crashes in the middle waits for ever. Nobody delivers wrongly.
Source      source text 002, "synchronous order"; the hierarchy of orders is B. Charron-Bost,
            F. Mattern, G. Tel, "Synchronous, asynchronous, and causally ordered communication",
            Distributed Computing 9(4), 1996.

    a message is big if it goes to a smaller process, and small otherwise
    on send(m) to j, big:       send m; be passive until the acknowledgement
    on send(m) to j, small:     ask j for permission and stay active
    on request from i:          grant it; be passive until the message
    on grant from j:            send m
    on m, big, from i:          deliver m; acknowledge
    on m, small, granted:       deliver m; be active
    a passive process neither sends nor handles what comes: it puts it in a queue

Whoever is passive waits for a smaller process, so waiting cannot go round in a circle. One
message is under way from each process at a time; it counts as sent when it leaves, not when the
user asks for it, since only from then on does its sender stand still or its receiver wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Accept, Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Held, Message, MessageId

__all__ = ["Acknowledge", "Ask", "Grant", "Synchronous", "Transfer"]


class Ask(Struct, frozen=True, array_like=True, tag="sync_ask"):
    id: MessageId


class Grant(Struct, frozen=True, array_like=True, tag="sync_grant"):
    id: MessageId


class Transfer(Struct, frozen=True, array_like=True, tag="sync_transfer"):
    message: Message


class Acknowledge(Struct, frozen=True, array_like=True, tag="sync_ack"):
    id: MessageId


Item = Ask | Grant | Transfer | Acknowledge


class Synchronous(Ordering):
    items = Item
    destinations = "one"
    needs_direct = True
    accepts_at_once = False

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.outgoing: deque[Message] = deque()
        """What the user wants to send; the first one may be under way."""
        self.asking: MessageId | None = None
        """Our small message that waits for permission."""
        self.passive_for: MessageId | None = None
        """Our big message that waits for its acknowledgement, or the small one we have granted."""
        self.partner: int | None = None
        """Whom we wait for while passive."""
        self.queue: deque[tuple[int, Item]] = deque()
        self.my_turn = True
        """Is it our own message's turn, so that the others cannot keep us busy for ever?"""

    def send(self, message: Message) -> Iterable[Effect]:
        self.outgoing.append(message)
        return self._go_on()

    def receive(self, source: int, item: Item) -> Iterable[Effect]:
        if self.passive_for is not None and not self._awaited(source, item):
            self.queue.append((source, item))
            return
        self.my_turn = True
        yield from self._handle(source, item)
        if source != self.me:  # what comes from here, comes while we go on already
            yield from self._go_on()

    def _awaited(self, source: int, item: Item) -> bool:
        """Is this what a passive process waits for?"""
        if source != self.partner:
            return False
        if isinstance(item, Transfer):
            return item.message.id == self.passive_for
        return isinstance(item, Acknowledge) and item.id == self.passive_for

    def _handle(self, source: int, item: Item) -> Iterator[Effect]:
        if isinstance(item, Ask):
            self._be_passive(item.id, source)
            yield Spread(Grant(item.id), (source,))
        elif isinstance(item, Grant):
            if item.id != self.asking:
                raise PeerError(f"process {source} grants {item.id}, which nobody asked for")
            self.asking = None
            yield from self._depart()
        elif isinstance(item, Acknowledge):
            if item.id != self.passive_for:
                raise PeerError(f"process {source} acknowledges {item.id}, which is not under way")
            self._be_active()
        else:
            yield from self._arrived(source, item.message)

    def _arrived(self, source: int, message: Message) -> Iterator[Effect]:
        yield Deliver(message)
        if message.id == self.passive_for:
            self._be_active()
        elif source > self.me:
            yield Spread(Acknowledge(message.id), (source,))
        elif source < self.me:
            raise PeerError(f"process {source} sends the small {message.id} without permission")

    def _go_on(self) -> Iterator[Effect]:
        """An active process takes turns: what has queued up, and what the user wants to send."""
        while self.passive_for is None:
            mine = bool(self.outgoing) and self.asking is None
            if mine and (self.my_turn or not self.queue):
                self.my_turn = False
                yield from self._begin(self.outgoing[0])
            elif self.queue:
                self.my_turn = True
                yield from self._handle(*self.queue.popleft())
            else:
                return

    def _begin(self, message: Message) -> Iterator[Effect]:
        to = message.addressees(self.size)[0]
        if to > self.me:
            self.asking = message.id
            yield Spread(Ask(message.id), (to,))
        else:
            if to < self.me:
                self._be_passive(message.id, to)
            yield from self._depart()

    def _depart(self) -> Iterator[Effect]:
        message = self.outgoing.popleft()
        yield Accept(message)
        yield Spread(Transfer(message), message.destinations)

    def _be_passive(self, id: MessageId, partner: int) -> None:
        self.passive_for, self.partner = id, partner

    def _be_active(self) -> None:
        self.passive_for, self.partner = None, None

    def held(self) -> Iterator[Held]:
        partner = () if self.partner is None else (self.partner,)
        for _, item in self.queue:
            if isinstance(item, Transfer):
                yield Held(item.message.id, waits_on=partner)
        for message in self.outgoing:
            waits_on = partner or tuple(self.outgoing[0].addressees(self.size))
            yield Held(message.id, waits_on=waits_on)
