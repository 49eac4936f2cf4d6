"""Algorithms with one guard removed. Each must be caught; one that survives is a hole in the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ordercast.protocols.disseminations.direct import Direct
from ordercast.protocols.effects import Deliver, Effect
from ordercast.protocols.interface import Ordering
from ordercast.protocols.messages import MessageId
from ordercast.protocols.orderings.causal_vector import CausalVector, Stamped
from ordercast.protocols.orderings.fifo import Chained, Fifo
from ordercast.protocols.stack import Stack


class NoCausalGuard(CausalVector):
    """Waits for the sender's own earlier messages, and not for what the sender had delivered."""

    def _missing(self, item: Stamped) -> Iterator[MessageId]:
        origin = item.message.id.origin
        return (missing for missing in super()._missing(item) if missing.origin == origin)


class NoFifoGuard(CausalVector):
    """Waits for what the sender had delivered, and not for the sender's own earlier messages."""

    def _missing(self, item: Stamped) -> Iterator[MessageId]:
        origin = item.message.id.origin
        return (missing for missing in super()._missing(item) if missing.origin != origin)

    def receive(self, source: int, item: Stamped) -> Iterable[Effect]:
        # Written out, because in the original an overtaken message would look like a repetition.
        for ready in self.lot.admit(item.message.id, item, self._lacks):
            id = ready.message.id
            self.delivered[id.origin] = max(self.delivered[id.origin], id.number)
            yield Deliver(ready.message)


class ForgetsToCount(CausalVector):
    """Stamps a message without counting what was delivered from others."""

    def send(self, message: object) -> Iterable[Effect]:
        delivered, self.delivered = self.delivered, [0] * self.size
        effects = list(super().send(message))  # type: ignore[arg-type]
        self.delivered = delivered
        return effects


class FifoWithoutWaiting(Fifo):
    """Delivers early messages at once."""

    def receive(self, source: int, item: Chained) -> Iterable[Effect]:
        return [Deliver(item.message)]


class FifoAcrossChannels(Fifo):
    """Chains every message to the sender's previous one, whoever that was for."""

    def send(self, message: object) -> Iterable[Effect]:
        self.last_sent = [max(self.last_sent)] * self.size
        return super().send(message)  # type: ignore[arg-type]


MUTANTS: dict[type[Ordering], tuple[str, str]] = {
    NoCausalGuard: ("causal", "everyone"),
    NoFifoGuard: ("fifo", "everyone"),
    ForgetsToCount: ("causal", "everyone"),
    FifoWithoutWaiting: ("fifo", "everyone"),
    FifoAcrossChannels: ("agreement", "some"),
}
"""Each mutant with the property that it breaks, and the traffic that brings it to light."""


def mutant_builder(mutant: type[Ordering]) -> Callable[[int, int], Stack]:
    return lambda me, size: Stack(mutant(me, size), Direct(me, size))
