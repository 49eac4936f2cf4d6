"""FIFO and causal order, where messages are set apart.

Without them, everyone delivered each message after all that came before it, or they would not be
all: so whatever a delivery lacks is one of them. At a process, what regular messages of one origin
lack x are in a row: from the first that x happened before, to the last before x was delivered.

In a log with holes, x may be in one if it was never delivered: then what lacks it is a doubt,
unless it lacks something else too that was delivered later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ordercast.pipeline.huge.aside import NOWHERE, Aside
from ordercast.pipeline.huge.knowledge import Knowledge
from ordercast.pipeline.huge.spans import Spans, size, union, without
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels.kernel import Bools, Ints

__all__ = ["Lacking", "Order", "causal_order", "fifo_order"]


@dataclass(frozen=True)
class Lacking:
    """A delivery that lacks a predecessor, which is a message set apart."""

    process: int
    position: int
    n: tuple[int, int]
    """Its origin and number."""
    m: int
    """Which message it lacks."""
    link: int
    """`kernels.findings`: how it came before."""


@dataclass(frozen=True)
class Order:
    """in: of the messages set apart, from where on each process's regular messages come after them,
    and which of them do"""

    aside: Aside
    since: Ints
    after: Bools
    causal: bool
    complete: bool
    """The log has no holes."""

    def broken(self, process: int, *, doubt: bool = False) -> list[Spans]:
        """By origin, the places of regular messages that the process delivered too early, or which
        it is in doubt that it did."""
        certain = self._lacking(process, self._proof(process))
        if not doubt:
            return certain
        every = self._lacking(process, self.aside.to[:, process])
        return [without(spans, less) for spans, less in zip(every, certain, strict=True)]

    def _proof(self, process: int) -> Bools:
        """What a process certainly delivered too late, if it was due before."""
        aside = self.aside
        return aside.to[:, process] & np.logical_or(aside.delivered[:, process], self.complete)

    def _lacking(self, process: int, those: Bools) -> list[Spans]:
        """By origin, the places of regular messages that the process delivered without those."""
        mine = np.flatnonzero(those)
        first, last = self.since[mine], self.aside.had[mine, process]
        return [
            union(zip(first[bad, o].tolist(), last[bad, o].tolist(), strict=True))
            for o, bad in enumerate((first <= last).T)
        ]

    def broken_apart(self, process: int, *, doubt: bool = False) -> list[int]:
        """Which of the messages set apart, in the order of the process."""
        aside = self.aside
        at = aside.at[:, process]
        lacking = aside.to[:, process, None] & self.after & (at[:, None] > at[None, :])
        certain = (lacking & self._proof(process)[:, None]).any(axis=0)
        bad = lacking.any(axis=0) & ~certain if doubt else certain
        facts = np.flatnonzero(aside.to[:, process] & (at != NOWHERE) & bad)
        return sorted(facts.tolist(), key=lambda m: int(at[m]))

    def count(self, *, doubt: bool = False) -> int:
        """How many deliveries are too early, or in doubt."""
        everyone = range(self.aside.members)
        regular = sum(size(spans) for p in everyone for spans in self.broken(p, doubt=doubt))
        return regular + sum(len(self.broken_apart(p, doubt=doubt)) for p in everyone)

    def explained(
        self, process: int, position: int, n: tuple[int, int], place: int | None, *, doubt: bool
    ) -> Lacking:
        """Of what a delivery lacked, the message that is easiest to follow; `place` is that of a
        regular message, or None."""
        aside = self.aside
        sender = n[0]
        at = aside.at[:, process]
        if place is None:
            which = aside.names.index(n)
            before, sent = self.after[:, which], int(aside.sent_at[which])
            delivered = aside.at[:, sender] < sent
            own = (aside.origin == sender) & (aside.sent_at < sent)
        else:
            before = self.since[:, sender] <= place
            delivered = aside.delivered[:, sender] & (aside.had_sent[:, sender] < place)
            own = (aside.origin == sender) & (aside.sent_sent < place)
        those = aside.to[:, process] if doubt else self._proof(process)
        lacking = np.flatnonzero(those & before & (at > position))
        best = min(lacking.tolist(), key=lambda m: self._preference(m, bool((own | delivered)[m])))
        link = f.SENT if own[best] else f.DELIVERED if delivered[best] else f.INDIRECT
        return Lacking(process, position, n, best, link)

    def _preference(self, m: int, near: bool) -> tuple[int, ...]:
        if not self.causal:
            return (int(self.aside.sent_at[m]),)
        return (not near, *self.aside.names[m])

    def processes(self, *, doubt: bool) -> Iterator[int]:
        """Who delivered something too early."""
        for p in range(self.aside.members):
            if any(self.broken(p, doubt=doubt)) or self.broken_apart(p, doubt=doubt):
                yield p


def fifo_order(aside: Aside, *, complete: bool) -> Order:
    mine = np.arange(len(aside.names))
    since = np.full((len(mine), aside.members), NOWHERE, np.int64)
    since[mine, aside.origin] = np.where(aside.sent, aside.sent_sent + 1, NOWHERE)
    same = aside.origin[:, None] == aside.origin[None, :]
    after = same & (aside.sent_at[:, None] < aside.sent_at[None, :]) & aside.sent[None, :]
    return Order(aside, since, after, causal=False, complete=complete)


def causal_order(aside: Aside, knowledge: Knowledge, *, complete: bool) -> Order:
    return Order(aside, knowledge.since, knowledge.future, causal=True, complete=complete)
