"""The second pass over a huge run: one window, judged. The checks are in `kernels.window`."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np

from ordercast.pipeline.huge.apart import Apart
from ordercast.pipeline.huge.found import Asked, Found, Gap, Knots, Name, Pair, Place, Stripe
from ordercast.pipeline.huge.spans import Spans
from ordercast.pipeline.huge.table import Table
from ordercast.pipeline.huge.tally import RANKED, TOTAL, Window
from ordercast.pipeline.kernels import sequence as k
from ordercast.pipeline.kernels import window as w
from ordercast.pipeline.kernels.entering import BEFORE
from ordercast.pipeline.kernels.findings import LISTED
from ordercast.pipeline.kernels.index import NEVER
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.kernels.run import PATIENCE

__all__ = ["judge_window", "own_sequence"]


def judge_window(
    window: Window,
    apart: Apart,
    properties: Collection[str],
    asked: Asked | None = None,
    *,
    complete: bool = True,
) -> Found:
    """`asked` is None if nothing is set apart; `complete` says that the log has no holes."""
    ranked = any(name in properties for name in RANKED)
    table = Table(window, apart, with_ranks=ranked)
    if asked is not None or "causal" in properties or "synchronous" in properties:
        missing = _missing(table)
        if missing:
            return Found(missing=missing)
    found = Found()
    if any(name in properties for name in TOTAL):
        found = _judge_total(table, found, asked, complete=complete)
    if "synchronous" in properties:
        found = msgspec.structs.replace(found, synchronous=_judge_synchronous(table, asked))
    if asked is not None:
        found = msgspec.structs.replace(found, known=_known(table, asked.known))
    return found


def own_sequence(window: Window, apart: Apart) -> list[Name]:
    """The window's own messages in the order of the reference."""
    table = Table(window, apart, with_ranks=False)
    return [table.name(m) for m in table.sequence.tolist()]


def _missing(table: Table) -> list[Spans]:
    marked = np.zeros(len(table.turn), np.bool_)
    bits = table.members.bit_length()
    width = np.int32 if len(table.needs) << bits < 2**31 else np.int64
    stamps: Ints = table.stamp.astype(width)
    stamped = stamps << bits | table.origins
    found = False
    for done, delivered in zip(table.done, table.delivered, strict=True):
        found |= w.mark_missing.compiled(
            done, delivered, stamped, bits, table.needs, table.start, table.floor, marked
        )
    if not found:
        return []
    spans: list[Spans] = [[] for _ in range(table.members)]
    edges = np.flatnonzero(np.diff(marked, prepend=False, append=False))
    for begin, end in edges.reshape(-1, 2).tolist():
        # A stretch of marks may go on from one origin to the next.
        for o in range(int(table.origins[begin]), int(table.origins[end - 1]) + 1):
            first = max(begin, int(table.start[o])) - int(table.start[o]) + int(table.floor[o])
            last = min(end, int(table.start[o + 1])) - int(table.start[o]) + int(table.floor[o])
            if last > first:
                spans[o].append((first + 1, last))
    return spans


def _known(table: Table, asked: list[tuple[int, list[int]]]) -> list[tuple[int, list[int]]]:
    found = []
    for which, places in asked:
        known = np.array(places)
        w.knowing.compiled(
            table.stamp, table.needs, table.start, table.floor, table.low, table.high, known
        )
        found.append((which, known.tolist()))
    return found


def _judge_total(table: Table, found: Found, asked: Asked | None, *, complete: bool) -> Found:
    nothing = table.sends[:0]
    had = w.had_before.compiled(table.rank, nothing, table.origins, True)
    delivered = had
    if not table.whole:
        delivered = w.had_before.compiled(table.rank, nothing, table.origins, False)
    gap = np.zeros(table.rank.shape, np.bool_)
    crossed = np.zeros(len(table.turn), np.bool_)
    for p, done in enumerate(table.done):
        w.gaps.compiled(
            done, table.turn, had[p], delivered[p], table.rank, table.whole, gap, crossed
        )
    doubt = np.zeros_like(gap)
    if not complete:
        gap, doubt = _late_only(table, delivered), gap
    if asked is not None:
        _mark(table, asked.gaps, gap)
        _mark(table, asked.doubts, doubt)
    doubt &= ~gap
    if gap.any() or doubt.any():
        found = msgspec.structs.replace(
            found,
            gaps=int(np.count_nonzero(gap)),
            doubts=int(np.count_nonzero(doubt)),
            listed=_gaps(table, gap, never=complete),
            doubted=[] if gap.any() else _gaps(table, doubt, never=True)[:1],
        )
    if crossed.any():
        pairs, exact = k.crossings.compiled(table.sequence, table.turn, table.rank, PATIENCE)
        found = msgspec.structs.replace(found, pairs=pairs, exact=exact)
    if crossed.any() or asked is not None:
        knots = _knots(table, table.rank, asked.total if asked is not None else None)
        pair = _pair(table, crossed, table.rank, nothing)
        found = msgspec.structs.replace(found, total=msgspec.structs.replace(knots, pair=pair))
    return found


def _late_only(table: Table, delivered: Ints) -> Bools:
    """The gaps, if what somebody never delivers does not count."""
    there = table.rank != NEVER
    rank = np.where(there, table.rank, BEFORE).astype(np.int32)
    gap = np.zeros(rank.shape, np.bool_)
    unused = np.zeros(len(rank), np.bool_)
    for p, done in enumerate(table.done):
        w.gaps.compiled(done, table.turn, delivered[p], delivered[p], rank, True, gap, unused)
    found: Bools = gap & there
    return found


def _mark(table: Table, stripes: list[Stripe], marks: Bools) -> None:
    for q, o, first, last in stripes:
        marks[table.message(o, first) : table.message(o, last) + 1, q] = True


def _judge_synchronous(table: Table, asked: Asked | None) -> Knots:
    had = w.had_before.compiled(table.chain, table.sends, table.origins, False)
    marked = np.zeros(len(table.turn), np.bool_)
    for p, done in enumerate(table.done):
        w.entangled.compiled(
            p, done, table.turn, table.origins, had[p], table.chain, table.sends, marked
        )
    knots = _knots(table, table.chain, asked.synchronous if asked is not None else None)
    pair = _pair(table, marked, table.chain, table.sends)
    return msgspec.structs.replace(knots, pair=pair)


def _knots(table: Table, last: Ints, asked: list[Name] | None) -> Knots:
    """in: `rank` or `chain`"""
    which = np.empty(0 if asked is None else len(table.sequence), np.int64)
    many, ended = k.knots.compiled(
        table.sequence, table.origins, table.turn, table.rank, last, last is table.chain, which
    )
    if not asked:
        return Knots(many, ended)
    place = np.full(len(table.turn), -1)
    place[table.sequence] = np.arange(len(which))
    size = np.bincount(which, minlength=ended + 1)
    tied = size > 1
    # The first may have begun before this window; the last, if it does not end here, goes on.
    tied[0] = many > np.count_nonzero(tied[1:ended]) if ended else True
    tied[ended] = True
    before = np.concatenate(([0], np.cumsum(tied)))
    places = []
    for name in asked:
        ordinal = int(which[place[table.message(*name)]])
        places.append(Place(name, ordinal, int(before[ordinal]), bool(tied[ordinal])))
    return Knots(many, ended, places)


def _pair(table: Table, marked: Bools, last: Ints, sends: Ints) -> Pair | None:
    """in: `rank` and nothing, or `chain` and `sends`"""
    if not marked.any():
        return None
    m = int(np.argmax(marked))
    n = w.partner.compiled(m, last, sends, table.origins)

    def shown(a: int, b: int) -> int:
        first = last[a].copy()
        if len(sends):
            first[table.origins[a]] = sends[a]
        # If nobody does, something was delivered before it was sent, and a window is lacking it.
        return int(np.argmax((last[b] != NEVER) & (first < last[b])))

    return Pair(table.name(m), table.name(n), shown(m, n), shown(n, m))


def _gaps(table: Table, gap: Bools, *, never: bool) -> list[Gap]:
    """The first ones, by process and time; `never` says that what was never delivered counts."""
    found: list[Gap] = []
    for q in range(table.members):
        room = LISTED - len(found)
        those = np.flatnonzero(gap[:, q]) if room else np.empty(0, np.int64)
        if not len(those):
            continue
        if len(those) > room:
            those = those[np.argpartition(table.rank[those, q], room)[:room]]
        those = those[np.argsort(table.rank[those, q])]
        positions = table.positions(q)
        for n in those.tolist():
            one = Gap(q, int(positions[n]), table.name(n))
            found.append(one if found else _with_reason(table, one, n, never=never))
    return found


def _with_reason(table: Table, gap: Gap, n: int, *, never: bool) -> Gap:
    """The smallest message, by name, that the process lacked."""
    q = gap.process
    m, ahead = w.lacking.compiled(n, q, table.rank, never)
    best = None if m < 0 else table.name(m)
    missing = m >= 0 and bool(table.rank[m, q] == NEVER)
    for o in range(table.members) if never else ():
        # What it never delivered may be too long ago to be in the tables.
        lost = int(table.last[q, o]) + 1
        had = (table.last[:, o] >= lost) & (table.rank[n] != NEVER)
        if lost <= table.floor[o] and had.any() and (best is None or (o, lost) < best):
            best, ahead, missing = (o, lost), int(np.argmax(had)), True
    return msgspec.structs.replace(gap, m=best, ahead=ahead, missing=missing)
