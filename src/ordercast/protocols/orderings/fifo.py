"""FIFO order: what one process sends is delivered in the order it was sent.

Guarantees  if p sends m before n and both are addressed to q, q does not deliver n before m.
Assumes     perfect links; they need not be FIFO themselves.
Costs       one counter per message, no extra messages, one network delay.
Source      source text 002, "FIFO order": number the messages of a channel; the receiver
            knows which number it expects, and early ones wait.

    on send(m) to Q:            for q in Q: spread (m, last_sent[q]) to q; last_sent[q] = m
    on receive((m, before), j): wait until before = last_delivered[j]
                                deliver m; last_delivered[j] = m

A channel is a pair of processes. Instead of a second number per channel, each copy names the
message before it on its channel, so that the receiver can say which message it waits for.
Destinations with the same predecessor (all of them, if only broadcasts are sent) share a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Count, Held, Message, MessageId

__all__ = ["Chained", "Fifo"]


class Chained(Struct, frozen=True, array_like=True, tag="fifo"):
    message: Message
    before: Count
    """The number of the previous message on this channel; 0 for the first."""


class Fifo(Ordering):
    items = Chained

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.last_sent = [0] * size
        self.last_delivered = [0] * size
        self.early: list[dict[int, Message]] = [{} for _ in range(size)]

    def send(self, message: Message) -> Iterable[Effect]:
        channels: dict[int, list[int]] = {}
        for process in message.addressees(self.size):
            channels.setdefault(self.last_sent[process], []).append(process)
            self.last_sent[process] = message.id.number
        for before, processes in channels.items():
            to = None if len(processes) == self.size else tuple(processes)
            yield Spread(Chained(message, before), to)

    def receive(self, source: int, item: Chained) -> Iterable[Effect]:
        origin = item.message.id.origin
        early = self.early[origin]
        if item.before < self.last_delivered[origin] or item.before in early:
            raise PeerError(f"{item.message.id} claims a place in the channel that is taken")
        early[item.before] = item.message
        while message := early.pop(self.last_delivered[origin], None):
            self.last_delivered[origin] = message.id.number
            yield Deliver(message)

    def held(self) -> Iterator[Held]:
        for early in self.early:
            for before, message in early.items():
                yield Held(message.id, (MessageId(message.id.origin, before),))
