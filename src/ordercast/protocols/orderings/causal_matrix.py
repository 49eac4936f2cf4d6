"""Causal order for any destinations, with matrix clocks (Raynal, Schiper, Toueg 1991).

Guarantees  if send(m) happened before send(n) and both are addressed to p, p does not deliver n
            before m.
Assumes     perfect links, a fixed group. Does not assume FIFO.
Costs       n * n counters per message, no extra messages, no extra delay.
Source      M. Raynal, A. Schiper, S. Toueg, "The causal ordering abstraction and a simple way to
            implement it", Information Processing Letters 39(6), 1991; source text 002.

    on send(m) to Q:            spread (m, M) to Q; for q in Q: M[i][q] = m
    on receive((m, W), j):      wait until W[k][i] is delivered, for every k
                                deliver m; M = max(M, W); for q in the destinations: M[j][q] = m

M[k][q] is the last message from k to q that is known of here. The source counts the messages
of a channel where we keep the number of the last one; both rise together, and a number can say
which message is missing. W is the matrix before the message itself was entered, so W[j][i], the
previous message on the same channel, is the FIFO condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import gt

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.effects import Deliver, Effect, Spread
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import Count, Held, Message, MessageId
from ordercast.protocols.parking import ParkingLot

__all__ = ["CausalMatrix", "Mapped"]


class Mapped(Struct, frozen=True, array_like=True, tag="causal_matrix"):
    message: Message
    matrix: tuple[tuple[Count, ...], ...]


class CausalMatrix(Ordering):
    items = Mapped

    def __init__(self, me: int, size: int) -> None:
        super().__init__(me, size)
        self.known = [[0] * size for _ in range(size)]
        self.delivered = [0] * size
        self.lot: ParkingLot[Mapped] = ParkingLot()

    def send(self, message: Message) -> Iterable[Effect]:
        item = Mapped(message, tuple(map(tuple, self.known)))
        self._enter(message)
        return [Spread(item, message.destinations)]

    def receive(self, source: int, item: Mapped) -> Iterable[Effect]:
        id = item.message.id
        if list(map(len, item.matrix)) != [self.size] * self.size:
            raise PeerError(f"{id} bears a matrix that is not {self.size} by {self.size}")
        if id.number <= self.delivered[id.origin]:
            raise PeerError(f"{id} has come before")
        for ready in self.lot.admit(id, item, self._lacks):
            self.delivered[ready.message.id.origin] = ready.message.id.number
            for mine, theirs in zip(self.known, ready.matrix, strict=True):
                if any(map(gt, theirs, mine)):  # mostly not, and this is quicker to see
                    mine[:] = map(max, mine, theirs)
            self._enter(ready.message)
            yield Deliver(ready.message)

    def held(self) -> Iterator[Held]:
        for id, item in self.lot.waiting.items():
            yield Held(id, tuple(self._missing(item)))

    def _enter(self, message: Message) -> None:
        origin, number = message.id
        row = self.known[origin]
        for process in message.addressees(self.size):
            row[process] = max(row[process], number)

    def _lacks(self, item: Mapped) -> MessageId | None:
        return next(self._missing(item), None)

    def _missing(self, item: Mapped) -> Iterator[MessageId]:
        for process, row in enumerate(item.matrix):
            if row[self.me] > self.delivered[process]:
                yield MessageId(process, row[self.me])
