"""Gossip: tell a few, who may tell a few; what chance has missed, comparison brings.

Guarantees  if one correct process receives a message, all correct processes do in the end; each
            message once.
Assumes     perfect links; crashes are suspected in the end.
Costs       at most fan-out copies per process while the rumour is fresh, fewer with every hop;
            at most (n-1) * (n-1) in all, in practice from n to 2n. Then digests of n counters
            until all are known to agree: n(n-1) and more for a message that comes alone, but
            messages share them. Delay: a few hops, or a few comparisons.
Permits     a process that crashes may have delivered what nobody else ever sees: not uniform.
Source      the improvement that source text 000 names: forward with a probability that falls with
            time; A. Demers et al., "Epidemic algorithms for replicated database maintenance",
            PODC 1987: rumour mongering backed up by anti-entropy.

    on spread(m):               tell (m, hop 1) to some; m arrives here
    on receive((m, h), j):      if m is new: with probability decay^h tell (m, hop h + 1) to some
                                m arrives, once all earlier ones of its sender have
    every period, unless everyone is known to have what we have:
                                send a digest of what we have to someone who is behind
    on digest D from j:         tell j what it lacks; answer with our own digest if it asks

Nobody tells the same process the same message twice: links are perfect, so what j was told and
seems to lack is on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import lt
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from msgspec import Meta, Struct

from ordercast.errors import PeerError
from ordercast.protocols.dice import Dice
from ordercast.protocols.effects import Arrive, Effect, StartTimer, Transmit
from ordercast.protocols.interface import Dissemination
from ordercast.protocols.messages import Count, Held, MessageId, id_of
from ordercast.protocols.retained import Retained

__all__ = ["Digest", "Gossip", "Rumour"]

Item = TypeVar("Item")
COMPARE, COMPARE_US = "gossip: compare", 50_000
LAST_HOP = 255


class Rumour(Struct, Generic[Item], frozen=True, array_like=True, tag="gos_rumour"):
    message: Item
    hops: Annotated[int, Meta(ge=1, le=LAST_HOP)]


class Digest(Struct, frozen=True, array_like=True, tag="gos_digest"):
    counts: tuple[Count, ...]
    asks: bool


class Heard(NamedTuple):
    """A message that is kept, and who has it or has been told it by us."""

    message: Any
    told: set[int]


class Gossip(Dissemination):
    destinations = "everyone"
    relays = True

    def __init__(
        self, me: int, size: int, *, fan_out: int = 2, decay: float = 0.7, seed: int = 0
    ) -> None:
        super().__init__(me, size)
        self.fan_out = fan_out
        self.decay = decay
        self.dice = Dice(seed * size + me)
        self.log = Retained(me, size)
        self.arrived = [0] * size
        self.log.kept_for.append(self.arrived)
        self.suspected: set[int] = set()
        self.comparing = False

    @staticmethod
    def packets(items: Any) -> Any:
        return Rumour[items] | Digest

    def spread(self, item: Any, to: tuple[int, ...] | None) -> Iterable[Effect]:
        return self._new(item, hops=0, source=self.me)

    def receive(self, source: int, packet: Any) -> Iterable[Effect]:
        if isinstance(packet, Digest):
            return self._compare(source, packet)
        if id_of(packet) in self.log.received:
            return []
        return self._new(packet.message, hops=packet.hops, source=source)

    def timer(self, name: str) -> Iterable[Effect]:
        if name == COMPARE:
            self.comparing = False
            if behind := self._behind():
                to = self.dice.sample(behind, 1)
                yield Transmit(to, Digest(self.log.counts(), asks=True))
                yield from self._compare_later()

    def suspect(self, process: int) -> Iterable[Effect]:
        self.suspected.add(process)
        return []

    def trust(self, process: int) -> Iterable[Effect]:
        self.suspected.discard(process)
        return self._compare_later()

    def bury(self, process: int) -> Iterable[Effect]:
        self.suspected.add(process)
        self.log.bury(process)
        return ()

    def _new(self, item: Any, *, hops: int, source: int) -> Iterator[Effect]:
        id = id_of(item)
        told = {self.me, id.origin, source}
        self.log.add(id, Heard(item, told))
        if self.dice.chance(100 * self.decay**hops):
            some = self.dice.sample(self.all_but(*told), self.fan_out)
            if some:
                told.update(some)
                yield Transmit(some, Rumour(item, min(hops + 1, LAST_HOP)))
        if id.number <= self.log.received.counts[id.origin]:  # otherwise there is a gap before it
            yield from self._hand_on(id.origin)
            yield from self._compare_later()

    def _hand_on(self, origin: int) -> Iterator[Effect]:
        """In order: beyond a gap that died with its sender, nobody else would ever follow."""
        while self.arrived[origin] < self.log.received.counts[origin]:
            self.arrived[origin] += 1
            yield Arrive(origin, self.log.items[origin][self.arrived[origin]].message)
        self.log.forget(origin)

    def _compare(self, source: int, digest: Digest) -> Iterator[Effect]:
        if len(digest.counts) != self.size:
            raise PeerError(f"process {source} counts for {len(digest.counts)} processes")
        for origin in self.log.learn(source, digest.counts):
            self.log.forget(origin)
        if digest.asks:
            yield Transmit((source,), Digest(self.log.counts(), asks=False))
        for origin, count in enumerate(digest.counts):
            for item in self.log.after(origin, count):
                if source not in item.told:
                    item.told.add(source)
                    yield Transmit((source,), Rumour(item.message, LAST_HOP))

    def _behind(self) -> list[int]:
        """Who is not known to have all that we have."""
        return [
            process
            for process in self.all_but(self.me, *self.suspected)
            if any(map(lt, self.log.known[process], self.log.received.counts))
        ]

    def _compare_later(self) -> Iterator[Effect]:
        if not self.comparing and self._behind():
            self.comparing = True
            yield StartTimer(COMPARE, COMPARE_US)

    def held(self) -> Iterator[Held]:
        for origin, items in enumerate(self.log.items):
            missing = MessageId(origin, self.log.received.counts[origin] + 1)
            for number in items:
                if number > self.arrived[origin]:
                    yield Held(MessageId(origin, number), (missing,))
