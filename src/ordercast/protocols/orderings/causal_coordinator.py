"""Causal order through one process: everything goes to the coordinator, which passes it on.

Guarantees  causal order for any destinations, and total order with it: what everyone delivers
            is a part of the one sequence in which the coordinator forwarded.
Assumes     perfect FIFO links; the coordinator (process 0) stays up.
Costs       one copy to the coordinator, one from it to each destination; two network delays; no
            metadata.
Permits     when the coordinator crashes nothing more is delivered, and what it was forwarding
            may have reached some destinations and not others.
Source      source text 002, "algorithm with a coordinator".

    on send(m) to Q:            spread m to the coordinator
    coordinator, on receive(m): forward m to Q
    on receive(m), forwarded:   deliver m

Why it is causal: m reaches the coordinator before n if m happened before n (the link from their
common sender is FIFO, or m had been forwarded before n was sent), so m leaves it first, and the
link to a common destination is FIFO too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Held, Message, MessageId

__all__ = ["CausalCoordinator", "Forwarded", "Request"]

COORDINATOR = 0


class Request(Struct, frozen=True, array_like=True, tag="cc_request"):
    message: Message


class Forwarded(Struct, frozen=True, array_like=True, tag="cc_forwarded"):
    message: Message


class CausalCoordinator(Ordering):
    items = Request | Forwarded
    needs_direct = True
    relays = True
    needs_fifo = True

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.awaited: set[MessageId] = set()
        """Our own messages to ourselves that have not come back yet."""

    @property
    def coordinator(self) -> int:
        return COORDINATOR

    def send(self, message: Message) -> Iterable[Effect]:
        if message.addressed_to(self.me):
            self.awaited.add(message.id)
        return [Spread(Request(message), (COORDINATOR,))]

    def receive(self, source: int, item: Request | Forwarded) -> Iterable[Effect]:
        if isinstance(item, Request):
            return [Spread(Forwarded(item.message), item.message.destinations)]
        if source != COORDINATOR:
            raise PeerError(f"process {source} forwards {item.message.id}, which it may not")
        self.awaited.discard(item.message.id)
        return [Deliver(item.message)]

    def held(self) -> Iterator[Held]:
        return (Held(id, waits_on=(COORDINATOR,)) for id in self.awaited)
