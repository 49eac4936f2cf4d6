"""The second pass over a huge run: one window, judged. The checks are in `kernels.window`."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from ordercast.pipeline.arrays import ints_of, kinds_of
from ordercast.pipeline.huge.segments import Segment, read
from ordercast.pipeline.huge.tally import RANKED, TOTAL, Stretch, Window
from ordercast.pipeline.kernels import window as w
from ordercast.pipeline.kernels.findings import LISTED
from ordercast.pipeline.kernels.index import DELIVER, NEVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.kernels.run import PATIENCE

__all__ = ["Found", "Gap", "Pair", "judge_window"]


class Pair(msgspec.Struct, frozen=True):
    """Two messages that come before each other, and who shows it."""

    m: tuple[int, int]
    n: tuple[int, int]
    forth: int
    """The first process that has m before n …"""
    back: int
    """… and the first that has n before m."""


class Gap(msgspec.Struct, frozen=True):
    process: int
    turn: int
    """The how-manieth of its deliveries it was."""
    position: int
    n: tuple[int, int]
    m: tuple[int, int] | None = None
    """What it lacked; only of the first gap."""
    ahead: int = -1
    """Who had that in time."""
    missing: bool = False


class Found(msgspec.Struct, frozen=True):
    """What a window shows."""

    causal: bool
    pairs: int = 0
    exact: bool = True
    gaps: int = 0
    total_knots: int = 0
    synchronous_knots: int = 0
    crossed: Pair | None = None
    entangled: Pair | None = None
    listed: list[Gap] = []
    """The first gaps."""


def judge_window(window: Window, properties: Collection[str]) -> Found:
    with_ranks = any(name in properties for name in RANKED)
    table = _Table(window, with_ranks=with_ranks)
    if "causal" in properties and not table.causal():
        return Found(causal=False)
    found = Found(causal=True)
    if any(name in properties for name in TOTAL):
        found = table.total(found)
    if "synchronous" in properties:
        found = table.synchronous(found)
    return found


class _Log(NamedTuple):
    """One member's rows that have to do with the window: its stretch, without what comes before
    and after in the row groups at its ends."""

    parts: list[tuple[Ints, Ints, Ints]]
    """kind, origin and number, from segment to segment."""
    skipped: int
    """How many rows of the first segment come before."""
    before: Ints
    """What it had delivered of each origin before these rows, and at last what it had sent …"""
    after: Ints
    """… and after them."""

    @classmethod
    def of(cls, stretch: Stretch, low: Ints, high: Ints) -> _Log:
        parts = [_columns(one) for one in stretch.segments]
        before = np.array([*stretch.delivered, stretch.sent])
        after = np.array([*stretch.ends, stretch.sent_ends])
        skipped = 0
        if parts:
            skipped = w.first_row.compiled(*parts[0], low, before)
            end = w.end_row.compiled(*parts[-1], high, after)
            parts[-1] = _sliced(parts[-1], 0, end)
            parts[0] = _sliced(parts[0], skipped, len(parts[0][0]))
        return cls(parts, skipped, before, after)


class _Table:
    """A window's messages and members; see `kernels.window`."""

    def __init__(self, window: Window, *, with_ranks: bool) -> None:
        low, high, last = np.array(window.low), np.array(window.high), np.array(window.last)
        logs = [_Log.of(one, low, high) for one in window.stretches]
        before = np.array([one.before for one in logs])
        after = np.array([one.after for one in logs])
        ceiling = np.maximum.reduce([after[:, :-1].max(axis=0), after[:, -1], high])
        self.window = window
        self.members = len(low)
        self.delivered = np.ascontiguousarray(before[:, :-1])
        self.skipped = [one.skipped for one in logs]
        self.whole = bool((ceiling <= last.min(axis=0)).all())
        """Everyone will have delivered all of its messages."""
        self.floor = np.minimum.reduce([self.delivered.min(axis=0), before[:, -1], low])
        self.start = np.concatenate(([0], np.cumsum(ceiling - self.floor)))
        size = int(self.start[-1])
        self.origins = np.repeat(np.arange(self.members, dtype=np.int32), np.diff(self.start))
        self.numbers = np.arange(size) - self.start[self.origins] + self.floor[self.origins] + 1
        early = self.numbers <= low[self.origins]
        late = self.numbers > high[self.origins]
        self.turn = np.where(early, w.EARLY, np.where(late, w.LATE, w.OWN)).astype(np.int8)
        ranked = size if with_ranks else 0
        self.rank = np.empty((ranked, self.members), np.int32)
        self.chain = np.empty((ranked, self.members), np.int32)
        self.sends = np.empty(ranked, np.int32)
        self.needs = np.zeros((size, self.members), np.int32)
        self.done = [self._enter(p, one, last[p]) for p, one in enumerate(logs)]

    def _enter(self, p: int, log: _Log, last: Ints) -> Ints:
        """Returns what the member did, see `kernels.window.enter`."""
        base, counted = self._base(p), log.before.copy()
        tables = (self.rank, self.chain, self.sends)
        if len(self.rank):
            w.outside.compiled(p, counted, last, self.start, self.floor, *tables)
        done = np.empty(sum(len(kind) for kind, _, _ in log.parts), np.int32)
        many = 0
        for part in log.parts:
            many += w.enter.compiled(
                p, *part, counted, self.start, self.floor, base, base + self.window.low[p],
                self.turn, *tables, self.needs, done[many:],
            )  # fmt: skip
        return done[:many]

    def _base(self, p: int) -> int:
        """How many messages of earlier windows a member delivers."""
        return int(np.minimum(self.window.low, self.window.last[p]).sum())

    def causal(self) -> bool:
        return all(
            w.check_causal.compiled(done, delivered, self.origins, self.turn, self.needs)
            for done, delivered in zip(self.done, self.delivered, strict=True)
        )

    @cached_property
    def sequence(self) -> Ints:
        """The window's own messages as the reference delivered them."""
        done = self.done[self.window.reference]
        delivered: Ints = done[done >= 0]
        mine: Ints = delivered[self.turn[delivered] == w.OWN]
        return mine

    def total(self, found: Found) -> Found:
        nothing = self.sends[:0]
        had = w.had_before.compiled(self.rank, nothing, self.origins, True)
        delivered = had
        if not self.whole:
            delivered = w.had_before.compiled(self.rank, nothing, self.origins, False)
        gap = np.zeros(self.rank.shape, np.bool_)
        crossed = np.zeros(len(self.turn), np.bool_)
        for p, done in enumerate(self.done):
            w.gaps.compiled(
                done, self.turn, had[p], delivered[p], self.rank, self.whole, gap, crossed
            )
        if not gap.any():
            return found
        found = msgspec.structs.replace(
            found, gaps=int(np.count_nonzero(gap)), listed=self._gaps(gap)
        )
        if not crossed.any():
            return found
        pairs, exact = w.crossings.compiled(self.sequence, self.turn, self.rank, PATIENCE)
        ends = w.knots.compiled(self.sequence, self.origins, self.turn, self.rank, self.rank, False)
        return msgspec.structs.replace(
            found,
            pairs=pairs,
            exact=exact,
            total_knots=ends,
            crossed=self._pair(crossed, self.rank, nothing),
        )

    def synchronous(self, found: Found) -> Found:
        had = w.had_before.compiled(self.chain, self.sends, self.origins, False)
        marked = np.zeros(len(self.turn), np.bool_)
        for p, done in enumerate(self.done):
            w.entangled.compiled(
                p, done, self.turn, self.origins, had[p], self.chain, self.sends, marked
            )
        ends = w.knots.compiled(self.sequence, self.origins, self.turn, self.rank, self.chain, True)
        return msgspec.structs.replace(
            found,
            synchronous_knots=ends,
            entangled=self._pair(marked, self.chain, self.sends) if marked.any() else None,
        )

    def _name(self, m: int) -> tuple[int, int]:
        return int(self.origins[m]), int(self.numbers[m])

    def _pair(self, marked: Bools, last: Ints, sends: Ints) -> Pair:
        """in: `rank` and nothing, or `chain` and `sends`"""
        m = int(np.argmax(marked))
        n = w.partner.compiled(m, last, sends, self.origins)

        def shown(a: int, b: int) -> int:
            first = last[a].copy()
            if len(sends):
                first[self.origins[a]] = sends[a]
            return int(np.flatnonzero((last[b] != NEVER) & (first < last[b]))[0])

        return Pair(self._name(m), self._name(n), shown(m, n), shown(n, m))

    def _gaps(self, gap: Bools) -> list[Gap]:
        """The first ones, by process and time."""
        found: list[Gap] = []
        for q in range(self.members):
            room = LISTED - len(found)
            those = np.flatnonzero(gap[:, q]) if room else ()
            if not len(those):
                continue
            if len(those) > room:
                those = those[np.argpartition(self.rank[those, q], room)[:room]]
            those = those[np.argsort(self.rank[those, q])]
            positions = self._positions(q)
            for n in those.tolist():
                m, ahead = (-1, -1) if found else w.lacking.compiled(n, q, self.rank)
                found.append(
                    Gap(
                        process=q,
                        turn=self._base(q) + int(self.rank[n, q]),
                        position=int(positions[n]),
                        n=self._name(n),
                        m=None if m < 0 else self._name(m),
                        ahead=ahead,
                        missing=m >= 0 and bool(self.rank[m, q] == NEVER),
                    )
                )
        return found

    def _positions(self, q: int) -> Ints:
        """Where q delivered each message."""
        kinds, positions = [], []
        for one in self.window.stretches[q].segments:
            table = read(one.piece, ("position", "kind")).slice(one.begin, one.end - one.begin)
            kinds.append(kinds_of(table["kind"]))
            positions.append(ints_of(table["position"], np.int64))
        kind, position = (np.concatenate(parts)[self.skipped[q] :] for parts in (kinds, positions))
        done = self.done[q]
        at = position[(kind == SEND) | (kind == DELIVER)][: len(done)]
        found = np.full(len(self.turn), -1)
        found[done[done >= 0]] = at[done >= 0]
        return found


def _columns(one: Segment) -> tuple[Ints, Ints, Ints]:
    table = read(one.piece, ("kind", "origin", "number")).slice(one.begin, one.end - one.begin)
    return (
        kinds_of(table["kind"]),
        ints_of(table["origin"], np.int32),
        ints_of(table["number"], np.int64),
    )


def _sliced(columns: tuple[Ints, Ints, Ints], begin: int, end: int) -> tuple[Ints, Ints, Ints]:
    kind, origin, number = columns
    return kind[begin:end], origin[begin:end], number[begin:end]
