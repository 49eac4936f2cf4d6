"""Messages that are set apart, compared with all others: in total order, and in synchronous order.

In the chain of a process, what comes before such a message are the regular messages of each origin
up to some place, and what comes after it are those from some place on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ordercast.pipeline.huge.aside import NOWHERE, Aside
from ordercast.pipeline.huge.spans import Spans, size, union
from ordercast.pipeline.huge.tally import Tally
from ordercast.pipeline.kernels.kernel import Bools, Ints

__all__ = ["Compared", "Message", "gaps_of", "lacking_apart", "lacking_regular"]

Message = tuple[int, int] | int
"""A regular message by its origin and place, or one set apart by its number among those."""


class Compared:
    """In one of the two orders; `with_sends` says in which. Arrays are by message set apart, then
    by process (p) and origin (o)."""

    def __init__(self, aside: Aside, tally: Tally, *, with_sends: bool) -> None:
        self.aside, self.with_sends = aside, with_sends
        n = aside.members
        everyone, final, sent = np.arange(n), tally.delivered, tally.sent
        there = aside.delivered
        self.first = aside.at.copy()
        """(p) The position at which it first is in the chain, or NOWHERE."""
        self.last = np.where(there, aside.at, -1)
        """(p) The last one, or -1."""
        self.upto = np.where(there[:, :, None], aside.had, 0)
        """(p, o) What is before it at p: places up to this."""
        self.since = np.where(there[:, :, None], aside.had, NOWHERE)
        """(p, o) What is after it at p: places beyond this …"""
        self.ends = final.copy()
        """… up to this, by p and o."""
        self.own = np.full(there.shape, NOWHERE)
        """(p) The same of its own messages that it never delivers itself …"""
        self.own_ends = sent
        """… up to this."""
        if with_sends:
            self._add_sends()
            self.upto[:, everyone, everyone] = np.where(
                self.last >= 0, np.maximum(self.upto[:, everyone, everyone], self._last_sent), 0
            )
            self.own = np.where(
                self.first != NOWHERE,
                np.maximum(self._first_sent, final[everyone, everyone]),
                NOWHERE,
            )

    def _add_sends(self) -> None:
        """Also the sends of these messages are points of chains."""
        aside = self.aside
        self._first_sent = aside.had_sent.copy()
        self._last_sent = aside.had_sent.copy()
        for m in np.flatnonzero(aside.sent).tolist():
            p, at = int(aside.origin[m]), int(aside.sent_at[m])
            if at < self.first[m, p]:
                self.first[m, p] = at
                self.since[m, p] = aside.sent_had[m]
                self._first_sent[m, p] = aside.sent_sent[m]
            if at > self.last[m, p]:
                self.last[m, p] = at
                self.upto[m, p] = aside.sent_had[m]
                self._last_sent[m, p] = aside.sent_sent[m]

    @cached_property
    def present(self) -> Bools:
        """It is in a chain at all."""
        found: Bools = np.any(self.last >= 0, axis=1)
        return found

    @cached_property
    def before(self) -> Ints:
        """(o) The last place of what is before it anywhere; 0 if there is none."""
        found: Ints = self.upto.max(axis=1)
        return found

    @cached_property
    def after(self) -> Ints:
        """(o) The first place of what is after it anywhere; NOWHERE if there is none."""
        found = np.where(self.since < self.ends, self.since + 1, NOWHERE).min(axis=1)
        own = np.where(self.own < self.own_ends, self.own + 1, NOWHERE)
        first: Ints = np.minimum(found, own)
        return first

    @cached_property
    def leads(self) -> Bools:
        """[x, y]: x is before y in some chain."""
        found = np.zeros((len(self.first),) * 2, np.bool_)
        for p in range(self.first.shape[1]):
            found |= self.first[:, p, None] < self.last[None, :, p]
        np.fill_diagonal(found, val=False)
        return found

    def crossed(self, x: int) -> list[Spans]:
        """By origin, the places of what is both before and after it."""
        found = []
        for o, upto in enumerate(self.before[x].tolist()):
            ends = np.minimum(self.ends[:, o], upto)
            those = np.flatnonzero(self.since[x, :, o] < ends)
            spans = [(int(self.since[x, p, o]) + 1, int(ends[p])) for p in those.tolist()]
            spans.append((int(self.own[x, o]) + 1, min(int(self.own_ends[o]), upto)))
            found.append(union(spans))
        return found

    def pairs(self) -> int:
        """How many pairs come before each other, of which one at least is set apart."""
        both = np.triu(self.leads & self.leads.T)
        regular = sum(size(spans) for x in range(len(both)) for spans in self.crossed(x))
        return int(np.count_nonzero(both)) + regular

    def is_before(self, process: int, m: Message, n: Message) -> bool:
        """Is m before n in the chain of a process? One of them at least is set apart."""
        if isinstance(m, tuple):
            assert isinstance(n, int)
            return bool(m[1] <= self.upto[n, process, m[0]])
        if isinstance(n, int):
            return bool(self.first[m, process] < self.last[n, process])
        o, place = n
        later = self.since[m, process, o] < place <= self.ends[process, o]
        return bool(later or (o == process and self.own[m, o] < place <= self.own_ends[o]))

    def shown(self, m: Message, n: Message) -> int | None:
        """The first process in whose chain m is before n."""
        everyone = range(self.aside.members)
        return next((p for p in everyone if self.is_before(p, m, n)), None)

    def partners(self, x: int) -> Iterator[Message]:
        """What comes before and after a message set apart: of each origin the first regular one,
        and all that are set apart."""
        for o in range(self.aside.members):
            if self.after[x, o] <= self.before[x, o]:
                yield o, int(self.after[x, o])
        yield from np.flatnonzero(self.leads[x] & self.leads[:, x]).tolist()


def gaps_of(aside: Aside, tally: Tally, process: int, those: Bools) -> list[Spans]:
    """By origin, the places of regular messages that the process delivered without one of those
    set apart, which somebody else delivered before them."""
    had, final = aside.had, tally.delivered
    found = []
    mine = np.flatnonzero(those & aside.to[:, process])
    for o in range(aside.members):
        first = had[mine, :, o] + 1
        last = np.minimum(final[None, :, o], had[mine, process, None, o])
        some = (first <= last) & aside.delivered[mine]
        found.append(union(zip(first[some].tolist(), last[some].tolist(), strict=True)))
    return found


def lacking_regular(aside: Aside, process: int, n: int) -> Iterator[tuple[int, int]]:
    """What the process lacked when it delivered a message set apart, of each origin the first."""
    others = aside.had[n][aside.delivered[n]].max(axis=0)
    for o in np.flatnonzero(others > aside.had[n, process]).tolist():
        yield o, int(aside.had[n, process, o]) + 1


def lacking_apart(aside: Aside, process: int, n: int) -> Iterator[int]:
    late = aside.to[:, process] & (aside.at[:, process] > aside.at[n, process])
    ahead = aside.delivered[n] & (aside.at < aside.at[n])
    for m in np.flatnonzero(late & ahead.any(axis=1)).tolist():
        if m != n:
            yield m
