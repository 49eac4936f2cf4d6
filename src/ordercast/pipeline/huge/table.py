"""The second pass over a huge run: what a window's rows say, in tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ordercast.pipeline.arrays import ints_of
from ordercast.pipeline.huge.apart import Apart
from ordercast.pipeline.huge.columns import Columns, Reader, columns_of, stripped
from ordercast.pipeline.huge.groups import Unhealthy, read
from ordercast.pipeline.huge.tally import CELLS, Stretch, Window
from ordercast.pipeline.kernels import entering as e
from ordercast.pipeline.kernels.index import DELIVER, SEND
from ordercast.pipeline.kernels.kernel import Ints

__all__ = ["Table"]


_LAG = 4
"""How many times the cells of a window there may be beside its own, if some process is far behind
the others: what it has to do with then is as much as that process is behind."""


class _Log(NamedTuple):
    """One member's rows that have to do with the window: its stretch, without what comes before
    and after in the row groups at its ends, and without what is set apart."""

    stretch: Stretch
    reader: Reader
    ends: dict[int, Columns]
    """The first and the last segment, which are cut."""
    skipped: int
    """How many rows of the first segment come before."""
    before: Ints
    """What it had delivered of each origin before these rows, and at last what it had sent …"""
    after: Ints
    """… and after them."""

    @classmethod
    def of(cls, stretch: Stretch, low: Ints, high: Ints, reader: Reader) -> _Log:
        before = np.array([*stretch.delivered, stretch.sent])
        after = np.array([*stretch.ends, stretch.sent_ends])
        skipped, last = 0, len(stretch.parts) - 1
        ends = {i: reader.columns(stretch.parts, i) for i in {0, last} if last >= 0}
        if ends:
            skipped = e.first_row.compiled(*ends[0], low, before)
            end = e.end_row.compiled(*ends[last], high, after)
            ends[last] = _sliced(ends[last], 0, end)
            ends[0] = _sliced(ends[0], skipped, len(ends[0][0]))
        return cls(stretch, reader, ends, skipped, before, after)

    def segments(self) -> Iterator[Columns]:
        """One by one: those in between are read only now, into memory that the one before had."""
        parts = self.stretch.parts
        for i in range(len(parts)):
            yield self.ends[i] if i in self.ends else self.reader.columns(parts, i)

    @property
    def rows(self) -> int:
        """At most."""
        return sum(part.end - part.begin for part in self.stretch.parts)


class Table:
    """A window's messages and members; see `kernels.window`."""

    def __init__(self, window: Window, apart: Apart, *, with_ranks: bool) -> None:
        self.low, self.high = np.array(window.low), np.array(window.high)
        self.last = np.array(window.last)
        reader = Reader(apart)
        logs = [_Log.of(one, self.low, self.high, reader) for one in window.stretches]
        before = np.array([one.before for one in logs])
        after = np.array([one.after for one in logs])
        ceiling = np.maximum.reduce([after[:, :-1].max(axis=0), after[:, -1], self.high])
        self.window = window
        self.apart = apart
        self.members = len(self.low)
        self.delivered = np.ascontiguousarray(before[:, :-1])
        self.skipped = [one.skipped for one in logs]
        self.whole = bool((ceiling <= self.last.min(axis=0)).all())
        """Everyone will have delivered all of its messages."""
        self.floor = _floor(self.low, before, self.last)
        self.start = np.concatenate(([0], np.cumsum(ceiling - self.floor)))
        size = int(self.start[-1])
        if (size - (self.high - self.low).sum()) * self.members > _LAG * CELLS:
            raise Unhealthy("has a process that is too far behind the others")
        self.origins = np.repeat(np.arange(self.members, dtype=np.int32), np.diff(self.start))
        self.turn = np.full(size, e.OWN, np.int8)
        for o in range(self.members):
            self.turn[self.start[o] : self.message(o, self.low[o]) + 1] = e.EARLY
            self.turn[self.message(o, self.high[o]) + 1 : self.start[o + 1]] = e.LATE
        ranked = size if with_ranks else 0
        self.rank = np.empty((ranked, self.members), np.int32)
        self.chain = np.empty((ranked, self.members), np.int32)
        self.sends = np.empty(ranked, np.int32)
        self.stamp = np.where(self.turn == e.OWN, 0, e.NOT_OWN).astype(np.int32)
        own = int((self.high - self.low).sum())
        self.needs = np.empty((1 + own, self.members), np.int32)
        self.needs[0] = 0
        self._used = 1
        self.done = [self._enter(p, one, self.last[p]) for p, one in enumerate(logs)]

    def _enter(self, p: int, log: _Log, last: Ints) -> Ints:
        """Returns what the member did, see `kernels.entering.enter`."""
        base, counted = self.base(p), log.before.copy()
        tables = (self.rank, self.chain, self.sends)
        if len(self.rank):
            e.outside.compiled(p, counted, last, self.start, self.floor, *tables)
        done = np.empty(log.rows, np.int32)
        many = 0
        for columns in log.segments():
            more, self._used = e.enter.compiled(
                p, *columns, counted, self.start, self.floor, base, base + self.window.low[p],
                self.turn, *tables, self.stamp, self.needs, self._used, done[many:],
            )  # fmt: skip
            many += more
        return done[:many]

    def base(self, p: int) -> int:
        """How many messages of earlier windows a member delivers."""
        return int(np.minimum(self.low, self.last[p]).sum())

    def message(self, origin: int, place: int) -> int:
        """The index of a regular message."""
        return int(self.start[origin] + place - self.floor[origin] - 1)

    def name(self, m: int) -> tuple[int, int]:
        """Its origin, and its place there."""
        o = int(self.origins[m])
        return o, int(m - self.start[o] + self.floor[o] + 1)

    @cached_property
    def sequence(self) -> Ints:
        """The window's own messages as the reference delivered them."""
        done = self.done[self.window.reference]
        delivered: Ints = done[done >= 0]
        mine: Ints = delivered[self.turn[delivered] == e.OWN]
        return mine

    def positions(self, q: int) -> Ints:
        """Where in its log q delivered each message."""
        kinds, positions = [], []
        for one in self.window.stretches[q].parts:
            (kind, _, _), kept = stripped(columns_of(one, self.members), self.apart)
            table = read(one.piece, ("position",)).slice(one.begin, one.end - one.begin)
            kinds.append(kind)
            positions.append(ints_of(table["position"], np.int64)[kept])
        kind, position = (np.concatenate(parts)[self.skipped[q] :] for parts in (kinds, positions))
        done = self.done[q]
        at = position[(kind == SEND) | (kind == DELIVER)][: len(done)]
        found = np.full(len(self.turn), -1)
        found[done[done >= 0]] = at[done >= 0]
        return found


def _floor(low: Ints, before: Ints, last: Ints) -> Ints:
    """Of each origin, the place before the first message that a window's tables must have. `before`
    is what each member had delivered before its stretch and, in the last column, sent.

    A member that has delivered of an origin all that it ever will says nothing; but one message is
    there, at least, that came before all others, to stand for those that it never delivered.
    """
    open_ = np.where(before[:, :-1] < last, before[:, :-1], np.iinfo(np.int64).max)
    least = np.minimum.reduce([open_.min(axis=0), before[:, -1], low])
    found: Ints = np.maximum(least - 1, 0)
    return found


def _sliced(columns: Columns, begin: int, end: int) -> Columns:
    kind, origin, place = columns
    return kind[begin:end], origin[begin:end], place[begin:end]
