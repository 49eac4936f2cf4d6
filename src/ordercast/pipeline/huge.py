"""One run that is too large for one task, split.

Two passes over the files, and nothing is shuffled. The first looks at each piece of each process's
log (`kernels.scan`): if all of them are what a healthy broadcast leaves behind, then a few counts
per piece say which messages are where, and settle most properties at once. The second judges
windows (`kernels.window`), each with the pieces that have something to do with its messages.

Whatever does not fit (holes, omissions, swaps, forgeries, messages for some members only) makes the
run `Unhealthy`: then it is one task's work after all, see `engine`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.pipeline.arrays import ints_of, kinds_of
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels import window as w
from ordercast.pipeline.kernels.findings import LISTED
from ordercast.pipeline.kernels.index import DELIVER, NEVER
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.kernels.run import PATIENCE
from ordercast.pipeline.rows import Piece
from ordercast.pipeline.shipping import local_path
from ordercast.trace.parquet import EVERYONE
from ordercast.trace.verdicts import PROPERTIES

__all__ = [
    "WINDOWED",
    "Found",
    "Gap",
    "Pair",
    "Segment",
    "Tally",
    "Unhealthy",
    "Window",
    "judge_window",
    "scan_pieces",
    "windows",
]

CELLS = 6_000_000
"""Messages × members in one window: what its task holds in memory is some 60 bytes for each, or a
third of that if only causal order is asked for."""
_TOTAL = ("total_pairwise", "total_acyclic", "total_gap_free")
_RANKED = (*_TOTAL, "synchronous")
WINDOWED = ("causal", *_RANKED)
"""The properties that take a second pass."""


class Unhealthy(Exception):  # noqa: N818 - it is no error
    """The run cannot be judged this way; but perhaps, if it is only unsorted, once it is sorted."""

    def __init__(self, *, unsorted: bool = False) -> None:
        super().__init__()
        self.unsorted = unsorted


class Segment(msgspec.Struct, frozen=True):
    """One process's rows in one row group."""

    process: int
    piece: Piece
    begin: int
    end: int
    first_position: int
    known: list[int]
    """`kernels.scan`"""
    low: list[int]
    high: list[int]


def scan_pieces(pieces: Sequence[Piece], members: int) -> Iterator[Segment]:
    """Raises `Unhealthy` at the first row that does not fit."""
    for piece in pieces:
        process, columns = _log_rows(piece)
        position = ints_of(columns["position"], np.int64)
        kind = kinds_of(columns["kind"])
        origin = ints_of(columns["origin"], np.int32)
        number = ints_of(columns["number"], np.int64)
        for begin, end, me in process:
            known = np.empty(s.WIDTH, np.int64)
            low, high = np.empty(members, np.int64), np.empty(members, np.int64)
            rows = slice(begin, end)
            if not 0 <= me < members:
                raise Unhealthy
            s.scan.compiled(
                me, members, position[rows], kind[rows], origin[rows], number[rows],
                known, low, high,
            )  # fmt: skip
            if known[s.HEALTHY] != s.FINE or position[begin] < 0:
                raise Unhealthy(unsorted=known[s.HEALTHY] == s.UNSORTED)
            yield Segment(
                me, piece, begin, end, int(position[begin]),
                known.tolist(), low.tolist(), high.tolist(),
            )  # fmt: skip


def _log_rows(piece: Piece) -> tuple[list[tuple[int, int, int]], pa.Table]:
    """Which rows are whose (from, to, process), and the columns that must be looked at: what the
    footer tells need not be read."""
    names = ["position", "kind", "origin", "number"]
    told = _footer(piece)
    owner = told.get("process")
    if owner is None or owner[0] != owner[1]:
        names.append("process")
    if not told.get("destinations"):
        names.append("destinations")
    table = _read(piece, names)
    if "destinations" in names and table["destinations"].null_count < len(table):
        raise Unhealthy
    if "process" not in names:
        assert owner is not None
        return [(0, len(table), owner[0])], table
    process = ints_of(table["process"], np.int64)
    edges = [0, *(np.flatnonzero(np.diff(process)) + 1).tolist(), len(process)]
    return [(begin, end, int(process[begin])) for begin, end in pairwise(edges)], table


def _footer(piece: Piece) -> dict[str, Any]:
    """The bounds of the row group's processes, and whether all its messages are for everyone."""
    assert piece.groups is not None
    (index,) = piece.groups
    footer = _opened(piece).metadata
    told: dict[str, Any] = {"destinations": EVERYONE in (footer.metadata or {})}
    group = footer.row_group(index)
    for place in range(group.num_columns):
        column = group.column(place)
        found, name = column.statistics, column.path_in_schema
        if found is None:
            continue
        if name == "process" and found.has_min_max and not found.null_count:
            told["process"] = (found.min, found.max)
    return told


def _read(piece: Piece, names: Sequence[str]) -> pa.Table:
    try:
        file = _opened(piece)
        present = [name for name in names if name in file.schema_arrow.names]
        table = file.read_row_groups(list(piece.groups or ()), columns=present, use_threads=False)
    except (pa.ArrowException, OSError):
        raise Unhealthy from None
    for name in names:
        if name not in present:
            table = table.append_column(name, pa.nulls(len(table)))
    return table


def _opened(piece: Piece) -> pq.ParquetFile:
    path = local_path(piece.token)
    about = path.stat()
    return _open(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=64)
def _open(path: Path, size: int, changed: int) -> pq.ParquetFile:
    """Footers of large files are long: a task reads each but once, as long as it is unchanged."""
    return pq.ParquetFile(path, read_dictionary=["kind"])


class _Log(NamedTuple):
    """One process's segments in order, and what it had done before each (and in the end)."""

    segments: list[Segment]
    delivered: Ints
    """(segments + 1) × origins"""
    sent: Ints
    chain: int
    """How many points its chain of sends and deliveries has."""
    down: bool


@dataclass(frozen=True)
class Tally:
    """A healthy run in counts."""

    logs: list[_Log]
    reference: int
    """A process that has delivered everything."""

    @property
    def delivered(self) -> Ints:
        """process × origin: how many it delivered in all."""
        return np.array([log.delivered[-1] for log in self.logs])

    @property
    def sent(self) -> Ints:
        return np.array([log.sent[-1] for log in self.logs])

    @property
    def up(self) -> Bools:
        return np.array([not log.down for log in self.logs])

    @classmethod
    def of(cls, segments: Collection[Segment], members: int) -> Tally:
        by_process = sorted(segments, key=lambda one: (one.process, one.first_position))
        found = {p: list(mine) for p, mine in groupby(by_process, lambda one: one.process)}
        logs = [_log(p, found.get(p, []), members) for p in range(members)]
        sent = np.array([log.sent[-1] for log in logs])
        for p, log in enumerate(logs):
            if (log.delivered[-1] == sent).all():
                return cls(logs, p)
        raise Unhealthy


def _log(me: int, segments: list[Segment], members: int) -> _Log:
    delivered = np.zeros((len(segments) + 1, members), np.int64)
    sent = np.zeros(len(segments) + 1, np.int64)
    chain, tail, down, previous = 0, 0, False, -1
    for i, one in enumerate(segments):
        known = one.known
        if one.first_position <= previous:
            raise Unhealthy(unsorted=True)
        previous = known[s.LAST_POSITION]
        low, high = np.array(one.low), np.array(one.high)
        if known[s.SENT] and known[s.SENT_FIRST] != sent[i] + 1:
            raise Unhealthy
        if ((high >= 0) & (low != delivered[i])).any():
            raise Unhealthy
        delivered[i + 1] = np.where(high >= 0, high, delivered[i])
        sent[i + 1] = sent[i] + known[s.SENT]
        points = known[s.SENT] + known[s.DELIVERED]
        if points:
            # A message that is delivered right after it was sent is one point of the chain.
            chain += points - known[s.ADJACENT] - (known[s.HEAD] > 0 and known[s.HEAD] == tail)
            tail = known[s.TAIL]
        if known[s.DOWN] >= 0:
            down = known[s.DOWN] == 1
    return _Log(segments, delivered, sent, chain, down)


class Stretch(msgspec.Struct, frozen=True):
    """The part of a process's log that a window needs."""

    segments: list[Segment]
    delivered: list[int]
    """What it had delivered before, of each origin …"""
    sent: int
    """… and sent."""
    ends: list[int]
    sent_ends: int


class Window(msgspec.Struct, frozen=True):
    low: list[int]
    """What the reference had delivered before the window, of each origin …"""
    high: list[int]
    """… and after it."""
    last: list[list[int]]
    """What each process will have delivered in the end."""
    reference: int
    stretches: list[Stretch]


def windows(tally: Tally, least: int, properties: Collection[str] = PROPERTIES) -> Iterator[Window]:
    """Cuts the run along the reference's log; `least` is how many windows there should be."""
    log = tally.logs[tally.reference]
    members = len(tally.logs)
    cells = CELLS if any(name in properties for name in _RANKED) else 3 * CELLS
    most = max(1, min(cells // members, int(tally.sent.sum()) // max(least, 1)))
    cuts = [0]
    for i in range(1, len(log.segments) + 1):
        full = (log.delivered[i] - log.delivered[cuts[-1]]).sum() >= most
        if full or i == len(log.segments):
            cuts.append(i)
    last = tally.delivered.tolist()
    for begin, end in pairwise(cuts):
        low, high = log.delivered[begin], log.delivered[end]
        if (low == high).all():
            continue
        stretches = [_stretch(p, one, low, high) for p, one in enumerate(tally.logs)]
        yield Window(low.tolist(), high.tolist(), last, tally.reference, stretches)


def _stretch(me: int, log: _Log, low: Ints, high: Ints) -> Stretch:
    """All segments from the first that has something of the window, or after it, to the last that
    has something of it, or before it."""
    from_here = (log.delivered[1:] > low).any(axis=1) | (log.sent[1:] > low[me])
    upto_here = (log.delivered[:-1] < np.minimum(high, log.delivered[-1])).any(axis=1) | (
        log.sent[:-1] < high[me]
    )
    mine = np.flatnonzero(from_here & upto_here)
    begin, end = (int(mine[0]), int(mine[-1]) + 1) if len(mine) else (len(log.segments),) * 2
    return Stretch(
        segments=log.segments[begin:end],
        delivered=log.delivered[begin].tolist(),
        sent=int(log.sent[begin]),
        ends=log.delivered[end].tolist(),
        sent_ends=int(log.sent[end]),
    )


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
    with_ranks = any(name in properties for name in _RANKED)
    table = _Table.of(window, with_ranks=with_ranks)
    if "causal" in properties and not table.causal():
        return Found(causal=False)
    found = Found(causal=True)
    if any(name in properties for name in _TOTAL):
        found = table.total(found)
    if "synchronous" in properties:
        found = table.synchronous(found)
    return found


class _Table:
    """A window's messages and members; see `kernels.window`."""

    def __init__(self, window: Window, *, with_ranks: bool) -> None:
        self.window = window
        low, high = np.array(window.low), np.array(window.high)
        self.members = len(low)
        starts = np.array([one.delivered for one in window.stretches])
        ends = np.array([one.ends for one in window.stretches])
        sent = np.array([(one.sent, one.sent_ends) for one in window.stretches])
        self.floor = np.minimum.reduce([starts.min(axis=0), sent[:, 0], low])
        ceiling = np.maximum.reduce([ends.max(axis=0), sent[:, 1], high])
        self.start = np.concatenate(([0], np.cumsum(ceiling - self.floor)))
        size = int(self.start[-1])
        self.origins = np.repeat(np.arange(self.members, dtype=np.int32), np.diff(self.start))
        self.numbers = np.arange(size) - self.start[self.origins] + self.floor[self.origins] + 1
        early = self.numbers <= low[self.origins]
        late = self.numbers > high[self.origins]
        self.turn = np.where(early, w.EARLY, np.where(late, w.LATE, w.OWN)).astype(np.int8)
        ranks = (size if with_ranks else 0, self.members)
        self.rank = np.empty(ranks, np.int32)
        self.first = np.empty(ranks, np.int32)
        self.chain = np.empty(ranks, np.int32)
        self.needs = np.zeros((size, self.members), np.int32)
        self.done: list[Ints] = []

    @classmethod
    def of(cls, window: Window, *, with_ranks: bool) -> _Table:
        table = cls(window, with_ranks=with_ranks)
        low = np.array(window.low)
        for p, stretch in enumerate(window.stretches):
            last = np.array(window.last[p])
            base = int(np.minimum(low, last).sum())
            kind, origin, number = _columns(stretch)
            table.done.append(
                w.enter.compiled(
                    p, kind, origin, number, np.array(stretch.delivered), stretch.sent, last,
                    table.start, table.floor, base, base + window.low[p], table.turn,
                    table.rank, table.first, table.chain, table.needs,
                )
            )  # fmt: skip
        return table

    def causal(self) -> bool:
        return all(
            w.check_causal.compiled(
                done, np.array(stretch.delivered), self.origins, self.turn, self.needs
            )
            for done, stretch in zip(self.done, self.window.stretches, strict=True)
        )

    @property
    def sequence(self) -> Ints:
        """The window's own messages as the reference delivered them."""
        done = self.done[self.window.reference]
        delivered: Ints = done[done >= 0]
        mine: Ints = delivered[self.turn[delivered] == w.OWN]
        return mine

    def total(self, found: Found) -> Found:
        had = w.had_before.compiled(self.rank, self.rank, True)
        delivered = w.had_before.compiled(self.rank, self.rank, False)
        gap = np.zeros(self.rank.shape, np.bool_)
        crossed = np.zeros(len(self.turn), np.bool_)
        for p, done in enumerate(self.done):
            w.gaps.compiled(done, self.turn, had[p], delivered[p], self.rank, gap, crossed)
        if not gap.any():
            return found
        if not crossed.any():
            return msgspec.structs.replace(found, gaps=int(gap.sum()), listed=self._gaps(gap))
        pairs, exact = w.crossings.compiled(self.sequence, self.turn, self.rank, PATIENCE)
        ends = w.knots.compiled(self.sequence, self.origins, self.turn, self.rank, self.rank, False)
        return msgspec.structs.replace(
            found,
            pairs=pairs,
            exact=exact,
            gaps=int(gap.sum()),
            total_knots=ends,
            crossed=self._pair(crossed, self.rank, self.rank),
            listed=self._gaps(gap),
        )

    def synchronous(self, found: Found) -> Found:
        had = w.had_before.compiled(self.first, self.chain, False)
        marked = np.zeros(len(self.turn), np.bool_)
        for p, done in enumerate(self.done):
            w.entangled.compiled(p, done, self.turn, had[p], self.first, self.chain, marked)
        ends = w.knots.compiled(self.sequence, self.origins, self.turn, self.rank, self.chain, True)
        return msgspec.structs.replace(
            found,
            synchronous_knots=ends,
            entangled=self._pair(marked, self.first, self.chain) if marked.any() else None,
        )

    def _name(self, m: int) -> tuple[int, int]:
        return int(self.origins[m]), int(self.numbers[m])

    def _pair(self, marked: Bools, first: Ints, last: Ints) -> Pair:
        m = int(np.flatnonzero(marked)[0])
        n = w.partner.compiled(m, first, last)

        def shown(a: int, b: int) -> int:
            return int(np.flatnonzero((last[b] != NEVER) & (first[a] < last[b]))[0])

        return Pair(self._name(m), self._name(n), shown(m, n), shown(n, m))

    def _gaps(self, gap: Bools) -> list[Gap]:
        """The first ones, by process and time."""
        found: list[Gap] = []
        for q in np.flatnonzero(gap.any(axis=0)).tolist():
            those = np.flatnonzero(gap[:, q])
            those = those[np.argsort(self.rank[those, q])][: LISTED - len(found)]
            positions = self._positions(q)
            base = int(np.minimum(self.window.low, self.window.last[q]).sum())
            for n in those.tolist():
                m, ahead = self._lacking(n, q) if not found else (None, -1)
                found.append(
                    Gap(
                        process=q,
                        turn=base + int(self.rank[n, q]),
                        position=int(positions[n]),
                        n=self._name(n),
                        m=None if m is None else self._name(m),
                        ahead=ahead,
                        missing=m is not None and bool(self.rank[m, q] == NEVER),
                    )
                )
            if len(found) >= LISTED:
                break
        return found

    def _lacking(self, n: int, q: int) -> tuple[int, int]:
        """The first message by name that q lacked when it delivered n, and who had it by then."""
        in_time = (self.rank < self.rank[n]) & (self.rank[n] != NEVER)
        m = int(np.flatnonzero(in_time.any(axis=1) & (self.rank[:, q] > self.rank[n, q]))[0])
        return m, int(np.flatnonzero(in_time[m])[0])

    def _positions(self, q: int) -> Ints:
        """Where q delivered each message."""
        stretch = self.window.stretches[q]
        position = np.concatenate(
            [
                ints_of(_read(one.piece, ["position"])["position"], np.int64)[one.begin : one.end]
                for one in stretch.segments
            ]
        )
        kind, origin, number = _columns(stretch)
        delivered = kind == DELIVER
        whose, which = origin[delivered], number[delivered]
        found = np.full(len(self.turn), -1)
        found[self.start[whose] + which - self.floor[whose] - 1] = position[delivered]
        return found


def _columns(stretch: Stretch) -> tuple[Ints, Ints, Ints]:
    parts = []
    for one in stretch.segments:
        table = _read(one.piece, ("kind", "origin", "number")).slice(one.begin, one.end - one.begin)
        parts.append(
            (
                kinds_of(table["kind"]),
                ints_of(table["origin"], np.int32),
                ints_of(table["number"], np.int64),
            )
        )
    if not parts:
        return np.empty(0, np.int8), np.empty(0, np.int32), np.empty(0, np.int64)
    kind, origin, number = (np.concatenate(column) for column in zip(*parts, strict=True))
    return kind, origin, number
