"""Uniform broadcast that acknowledges by vector: one payload copy for each, and counts instead
of copies.

Guarantees  if any process delivers a message, even one that crashes right after, all correct
            processes do; each message once, and each sender's in order.
Assumes     perfect links; fewer than half of the processes crash.
Costs       n-1 payload copies; up to n-1 acknowledgements from each process, fewer the more
            messages are under way; two network delays; n counters per packet.
Source      the improvement that source text 000 names: processes exchange their states and fetch
            what they miss; stability by cumulative vectors as in K. Birman, A. Schiper,
            P. Stephenson, "Lightweight causal and atomic group multicast", ACM TOCS 9(3), 1991.

    R[k]: all messages of k up to this number are here; K[j] is the R of j, as far as known
    on spread(m):               keep m; transmit (m, R) to everyone else
    on receive((m, S), j):      keep m; R += m; K[j] = max(K[j], S); tell everyone R, before long:
                                at once if m alone lacks a quorum, here or at its sender
    on receive(S, j):           K[j] = max(K[j], S)
    when a quorum of K has counted m: m arrives
    when all of K have counted m: forget m
    when K[j] shows m and R does not, for a while: pull m from j
    on suspicion of k:          transmit what is kept of k to those who lack it, once

While a process is down, what it lacks is kept for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct

from ordercast.errors import PeerError, UsageError
from ordercast.protocols.effects import Arrive, Effect, StartTimer, Transmit
from ordercast.protocols.interface import Dissemination
from ordercast.protocols.messages import Count, Held, MessageId, Process, id_of
from ordercast.protocols.retained import Retained

__all__ = ["Counts", "Data", "MajorityAcks", "Pull"]

Item = TypeVar("Item")
TELL, TELL_US = "majority_acks: tell", 500
PULL, PULL_US = "majority_acks: pull", 100_000


class Data(Struct, Generic[Item], frozen=True, array_like=True, tag="acks_data"):
    message: Item
    counts: tuple[Count, ...]


class Counts(Struct, frozen=True, array_like=True, tag="acks_counts"):
    counts: tuple[Count, ...]


class Pull(Struct, frozen=True, array_like=True, tag="acks_pull"):
    origin: Process
    after: Count


class MajorityAcks(Dissemination):
    destinations = "everyone"
    relays = True

    def __init__(self, me: int, size: int, *, threshold: int | None = None) -> None:
        super().__init__(me, size)
        self.threshold = size // 2 + 1 if threshold is None else threshold
        if not 1 <= self.threshold <= size:
            raise UsageError(f"a threshold of {threshold} makes no sense in a group of {size}")
        self.log = Retained(me, size)
        self.arrived = [0] * size
        self.told = tuple([0] * size)
        self.telling = False
        self.pulling = False
        self.lagging: set[int] = set()
        """Origins of which someone has more than we have, or had."""
        self.overdue: dict[int, int] = {}
        """By origin, the number that we lacked already when the timer was started."""
        self.pulled: dict[int, dict[int, int]] = {}
        """By origin and holder, the number that was asked for last."""
        self.passed_on: dict[int, dict[int, int]] = {}
        """By origin that was suspected and by receiver, up to which number it was all sent there:
        a perfect link does not need it twice, however often the suspicion is renewed."""

    @staticmethod
    def packets(items: Any) -> Any:
        return Data[items] | Counts | Pull

    def spread(self, item: Any, to: tuple[int, ...] | None) -> Iterable[Effect]:
        self.log.add(id_of(item), item)
        self.told = self.log.counts()
        self.telling = False  # all is told: what comes next has the whole delay before it
        yield Transmit(self.all_but(self.me), Data(item, self.told))
        yield from self._settle(self.me)

    def receive(self, source: int, packet: Any) -> Iterable[Effect]:
        if isinstance(packet, Pull):
            yield from self._serve(source, packet)
            return
        if len(packet.counts) != self.size:
            raise PeerError(f"process {source} counts for {len(packet.counts)} processes")
        if isinstance(packet, Data):
            yield from self._settle(self._keep(packet.message))
        for origin in self.log.learn(source, packet.counts):
            if packet.counts[origin] > self.log.received.counts[origin]:
                self.lagging.add(origin)
            yield from self._settle(origin)
        yield from self._tell_soon()
        if self.lagging:
            yield from self._pull_later()

    def timer(self, name: str) -> Iterable[Effect]:
        if name == TELL:
            self.telling = False
            counts = self.log.counts()
            if counts != self.told:
                self.told = counts
                yield Transmit(self.all_but(self.me), Counts(counts))
        elif name == PULL:
            self.pulling = False
            for origin, number in self.overdue.items():
                yield from self._pull(origin, number)
            yield from self._pull_later()

    def suspect(self, process: int) -> Iterable[Effect]:
        passed_on = self.passed_on.setdefault(process, {})
        for other in self.all_but(self.me, process):
            there = max(self.log.known[other][process], passed_on.get(other, 0))
            for item in self.log.after(process, there):
                yield Transmit((other,), Data(item, self.log.counts()))
            passed_on[other] = self.log.received.counts[process]

    def bury(self, process: int) -> Iterable[Effect]:
        self.log.bury(process)
        for passed_on in self.passed_on.values():
            passed_on.pop(process, None)
        return ()

    def _keep(self, item: Any) -> int:
        id = id_of(item)
        if id not in self.log.received:
            self.log.add(id, item)
        self.log.learn_from(id)
        return id.origin

    def _settle(self, origin: int) -> Iterator[Effect]:
        """Hand on what a quorum holds, in order; forget what everyone holds."""
        here = self.log.received.counts[origin]
        if self.arrived[origin] < here:
            stable = min(here, self.log.held_by(self.threshold, origin))
            while self.arrived[origin] < stable:
                self.arrived[origin] += 1
                yield Arrive(origin, self.log.items[origin][self.arrived[origin]])
        self.log.forget(origin)

    def _tell_soon(self) -> Iterator[Effect]:
        """At once if a single message is all there is to tell, and no other waits for a quorum: its
        sender does, at least. Otherwise there is more to come, and one vector will speak for all of
        it."""
        if not self.telling and self.log.counts() != self.told:
            self.telling = True
            here = sum(self.log.received.counts)
            alone = here - sum(self.told) == 1 and here - sum(self.arrived) <= 1
            yield StartTimer(TELL, 0 if alone else TELL_US)

    def _pull_later(self) -> Iterator[Effect]:
        if self.pulling or not self.lagging:
            return
        counts = self.log.received.counts
        self.lagging = {
            origin
            for origin in self.lagging
            if any(known[origin] > counts[origin] for known in self.log.known)
        }
        self.overdue = {
            origin: counts[origin] + 1
            for origin in sorted(self.lagging)
            if self._holder(origin) is not None
        }
        if self.overdue:
            self.pulling = True
            yield StartTimer(PULL, PULL_US)

    def _pull(self, origin: int, number: int) -> Iterator[Effect]:
        holder = self._holder(origin)
        if holder is not None and number == self.log.received.counts[origin] + 1:
            self.pulled.setdefault(origin, {})[holder] = number
            yield Transmit((holder,), Pull(origin, after=number - 1))

    def _holder(self, origin: int) -> int | None:
        """Someone who has the next message of `origin` that we lack and was not asked for it."""
        number = self.log.received.counts[origin] + 1
        asked = self.pulled.get(origin, {})
        for process, known in enumerate(self.log.known):
            if known[origin] >= number and asked.get(process) != number:
                return process
        return None

    def _serve(self, source: int, pull: Pull) -> Iterator[Effect]:
        if pull.origin >= self.size:
            raise PeerError(f"process {source} pulls messages of nobody in this group")
        for item in self.log.after(pull.origin, pull.after):
            yield Transmit((source,), Data(item, self.log.counts()))

    def held(self) -> Iterator[Held]:
        for origin, items in enumerate(self.log.items):
            for number in items:
                if number > self.log.received.counts[origin]:
                    missing = MessageId(origin, self.log.received.counts[origin] + 1)
                    yield Held(MessageId(origin, number), (missing,))
                elif number > self.arrived[origin]:
                    lacking = (
                        p for p in self.all_but(self.me) if self.log.known[p][origin] < number
                    )
                    yield Held(MessageId(origin, number), waits_on=tuple(lacking))
