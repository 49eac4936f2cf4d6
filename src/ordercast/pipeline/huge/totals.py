"""Total order in numbers: gaps, crossed pairs, and how many facts were checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ordercast.pipeline.huge.aside import Aside
from ordercast.pipeline.huge.attempt import Split
from ordercast.pipeline.huge.compared import Compared, lacking_apart, lacking_regular
from ordercast.pipeline.huge.found import Found, Gap
from ordercast.pipeline.huge.tally import Tally
from ordercast.pipeline.kernels.findings import LISTED

__all__ = [
    "Gaps",
    "Reason",
    "chain_neighbours",
    "deliveries",
    "gaps_in",
    "neighbours",
    "pairs_in",
    "shared",
]


class Reason(NamedTuple):
    """What a process lacked that others had."""

    m: tuple[int, int]
    ahead: int
    """Who had it in time."""
    missing: bool
    """The process never delivered it."""


class Gaps(NamedTuple):
    many: int
    doubts: int
    listed: list[tuple[int, int, tuple[int, int]]]
    """The first ones: process, position, and the message's origin and number."""
    first: tuple[int, tuple[int, int]] | None
    """The process and message of the first one or, if there is none, of the first doubt …"""
    reason: Reason | None
    """… and its reason."""


class _Open(NamedTuple):
    process: int
    position: int
    n: tuple[int, int]
    told: Gap | None
    """As its window tells it, if it is of a regular message."""


def deliveries(tally: Tally, aside: Aside | None) -> int:
    """First ones, of whatever message."""
    more = 0 if aside is None else np.count_nonzero(aside.delivered)
    return int(tally.delivered.sum() + more)


def shared(tally: Tally, aside: Aside | None) -> int:
    """Neighbours in each process's order, of messages that others have delivered as well."""
    delivered = tally.delivered
    if len(delivered) < 2:
        return 0
    mine = np.minimum(delivered, np.sort(delivered, axis=0)[-2]).sum(axis=1)
    if aside is not None:
        there = aside.delivered
        mine = mine + there[there.sum(axis=1) >= 2].sum(axis=0)
    return int(np.maximum(mine - 1, 0).sum())


def neighbours(tally: Tally, aside: Aside | None) -> int:
    """Of all that each process delivered."""
    many = tally.delivered.sum(axis=1)
    if aside is not None:
        many = many + aside.delivered.sum(axis=0)
    return int(np.maximum(many - 1, 0).sum())


def chain_neighbours(tally: Tally, aside: Aside | None) -> int:
    """Of all that each process sent and delivered, if what it delivered right after it had sent it
    is there once."""
    total = 0
    for p, log in enumerate(tally.logs):
        points = int(log.sent[-1] + log.delivered[-1].sum()) - log.merged
        total += max(points + (0 if aside is None else aside.extra[p]) - 1, 0)
    return total


def pairs_in(tally: Tally, aside: Aside | None, windows: Sequence[Found]) -> int:
    """Crossed ones."""
    many = sum(one.pairs for one in windows)
    if aside is not None:
        many += Compared(aside, tally, with_sends=False).pairs()
    return many


def gaps_in(split: Split) -> Gaps:
    """Those of regular messages come from the windows, the others are found here."""
    aside, number = split.aside, split.tally.apart.number
    gaps, doubts = (
        [_Open(gap.process, gap.position, (gap.n[0], number(*gap.n)), gap) for gap in those]
        for those in (
            (gap for one in split.windows for gap in one.listed),
            (gap for one in split.windows for gap in one.doubted),
        )
    )
    many = sum(one.gaps for one in split.windows)
    doubtful = sum(one.doubts for one in split.windows)
    for n, q in np.argwhere(aside.delivered).tolist() if aside is not None else ():
        assert aside is not None
        reasons = list(_reasons_apart(split, q, n))
        one = _Open(q, int(aside.at[n, q]), aside.names[n], None)
        if any(split.complete or not reason.missing for reason in reasons):
            many += 1
            gaps.append(one)
        elif reasons:
            doubtful += 1
            doubts.append(one)
    gaps.sort(key=lambda gap: gap[:2])
    first = min(gaps or doubts, key=lambda gap: gap[:2], default=None)
    reason = None if first is None else _reason(split, first, doubt=not gaps)
    listed = [(gap.process, gap.position, gap.n) for gap in gaps[:LISTED]]
    return Gaps(many, doubtful, listed, None if first is None else (first.process, first.n), reason)


def _reason(split: Split, gap: _Open, *, doubt: bool) -> Reason:
    """The smallest message, by name, that the process lacked."""
    aside = split.aside
    reasons: list[Reason] = []
    if gap.told is None:
        assert aside is not None
        reasons += _reasons_apart(split, gap.process, aside.names.index(gap.n))
    else:
        if gap.told.m is not None:
            o, place = gap.told.m
            name = (o, split.tally.apart.number(o, place))
            reasons.append(Reason(name, gap.told.ahead, gap.told.missing))
        if aside is not None:
            reasons += _apart_before(split.tally, aside, gap.process, gap.told.n)
    return min(reason for reason in reasons if split.complete or reason.missing == doubt)


def _reasons_apart(split: Split, q: int, n: int) -> Iterator[Reason]:
    """What a process lacked when it delivered a message set apart; of each origin the first."""
    aside, tally = split.aside, split.tally
    assert aside is not None
    for o, place in lacking_regular(aside, q, n):
        ahead = int(np.argmax(aside.delivered[n] & (aside.had[n, :, o] >= place)))
        missing = bool(place > tally.delivered[q, o])
        yield Reason((o, tally.apart.number(o, place)), ahead, missing)
    for m in lacking_apart(aside, q, n):
        ahead = int(np.argmax(aside.delivered[n] & (aside.at[m] < aside.at[n])))
        yield Reason(aside.names[m], ahead, not aside.delivered[m, q])


def _apart_before(tally: Tally, aside: Aside, q: int, n: tuple[int, int]) -> Iterator[Reason]:
    """What of the messages set apart a process lacked when it delivered a regular one."""
    o, place = n
    for m in np.flatnonzero(aside.to[:, q] & (aside.had[:, q, o] >= place)).tolist():
        had = aside.delivered[m] & (aside.had[m, :, o] < place) & (tally.delivered[:, o] >= place)
        if had.any():
            yield Reason(aside.names[m], int(np.argmax(had)), not aside.delivered[m, q])
