"""No order: a message is delivered as soon as it arrives.

Guarantees  nothing about order; each message is delivered once.
Assumes     perfect links (no loss, no repetition).
Costs       no metadata, no waiting.
Source      the base of the hierarchy of orders (source text 002, "asynchronous").

    on send(m):             spread m
    on receive(m):          deliver m
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Message

__all__ = ["Unordered"]


class Unordered(Ordering):
    items = Message

    def send(self, message: Message) -> Iterable[Effect]:
        return [Spread(message, message.destinations)]

    def receive(self, source: int, item: Message) -> Iterable[Effect]:
        return [Deliver(item)]
