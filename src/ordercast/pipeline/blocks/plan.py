"""Where a huge run is cut: through all logs at about the same time, a block of rows after the last.

What "at the same time" means is taken from one process, that with the most rows. At each look,
what it has sent so far, and what it has yet to deliver of the others, say which messages were sent
before it, or might have been: up to those numbers everyone's rows are before the cut. Numbers only
limit a cut; exactly where it is, the rows tell (`cutting`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ordercast.pipeline.blocks.sketches import FAR, Log
from ordercast.pipeline.huge.segments import Part
from ordercast.pipeline.kernels import sketch as k
from ordercast.pipeline.kernels.kernel import Ints

__all__ = ["Border", "State", "Stretch", "Work", "blocks"]


@dataclass(frozen=True)
class Border:
    """A cut, and one on either side of it: between the outer ones, all that was under way at the
    middle one should be sent and delivered."""

    before: Ints
    """The numbers up to which messages may lie before the cut."""
    at: Ints
    after: Ints


@dataclass(frozen=True)
class State:
    """How far a process has come before a row."""

    row: int
    most: Ints
    """The greatest number of each origin that it sent or delivered."""
    sent: int


@dataclass(frozen=True)
class Stretch:
    """All that a block may need of one log."""

    parts: list[Part]
    states: list[State]
    """Before each part, and after the last."""
    rows: int
    """In the whole log."""


@dataclass(frozen=True)
class Work:
    """One block: from border to border; None is an end of the run."""

    low: Border | None
    high: Border | None
    stretches: list[Stretch]
    last: Ints
    """The number of each process's last message."""


def blocks(logs: Sequence[Log], rows: int, margin: int) -> list[Work]:
    """in: how many rows a block should have, in all logs together, and a margin"""
    borders = [None, *_borders(logs, rows, margin), None]
    last = np.array([log.last_sent for log in logs])
    return [
        Work(low, high, [_stretch(log, low, high, margin) for log in logs], last)
        for low, high in pairwise(borders)
    ]


def _stretch(log: Log, low: Border | None, high: Border | None, margin: int) -> Stretch:
    """With some more before it: the exact cut is never after the one that numbers allow, but it may
    be before it."""
    begin, end = 0, log.rows
    if low is not None:
        looks = int(log.looks_within(low.before))
        begin = max((int(log.ends[looks - 1]) if looks else 0) - margin, 0)
    if high is not None:
        looks = int(log.looks_within(high.after))
        end = int(log.ends[min(looks, len(log.ends) - 1)]) if len(log.ends) else 0
    first = max(int(np.searchsorted(log.first_row, begin, side="right")) - 1, 0)
    last = int(np.searchsorted(log.first_row, end, side="left"))
    first = min(first, last)
    return Stretch(
        [one.part for one in log.sketches[first:last]],
        [_state(log, i) for i in range(first, last + 1)],
        log.rows,
    )


def _state(log: Log, sketch: int) -> State:
    row = int(log.first_row[sketch])
    look = int(np.searchsorted(log.ends, row, side="right"))
    most = log.most[look - 1] if look else np.zeros(log.most.shape[1], np.int64)
    sent = max((one.known[k.LAST_SENT] for one in log.sketches[:sketch]), default=0)
    return State(row, most, sent)


def _borders(logs: Sequence[Log], rows: int, margin: int) -> Iterator[Border]:
    limits = _limits(logs)
    each = np.array([_rows_within(log, limits) for log in logs])
    within, ends = each.sum(axis=0), np.array([log.rows for log in logs])
    shares = -(-margin * ends // max(int(ends.sum()), 1))
    after, used = 0, 0
    while True:
        at = max(int(np.searchsorted(within, used + rows)), after)
        if at >= len(within) or within[at] + rows // 2 > ends.sum():
            return
        before, after = _around(each, at, shares)
        if after >= len(within):
            return
        yield Border(limits[before], limits[at], limits[after])
        used = int(within[at])


def _around(each: Ints, at: int, shares: Ints) -> tuple[int, int]:
    """The limits on either side between which every process has its share of the margin; those that
    seldom hear of the others go on by leaps."""
    before, after = at, at
    for rows, share in zip(each, shares.tolist(), strict=True):
        least, most = max(rows[at] - share, rows[0]), min(rows[at] + share, rows[-1])
        before = min(before, int(np.searchsorted(rows, least, side="right")) - 1)
        after = max(after, int(np.searchsorted(rows, most)))
    return max(before, 0), after


def _limits(logs: Sequence[Log]) -> Ints:
    """Rising limits for cuts: look by look of the process with the most rows, and when that one has
    no more, of the one that has most left, and so on."""
    found = [np.zeros((1, len(logs)), np.int64)]
    left = set(range(len(logs)))
    while left:
        last = found[-1][-1]
        rest = {p: logs[p].rows - _row_of(logs[p], last) for p in left}
        reference = max(rest, key=lambda p: (rest[p], -p))
        left.discard(reference)
        if rest[reference] > 0 and len(logs[reference].ends) > 1:  # no look is before the first
            found.append(np.maximum(_limits_of(logs[reference], reference), last))
    limits = np.concatenate(found)
    new = np.append(True, (np.diff(limits, axis=0) > 0).any(axis=1))
    chosen: Ints = limits[new]
    return chosen


def _limits_of(log: Log, me: int) -> Ints:
    """Before each look but the first: what it has yet to deliver is beyond; of an origin that it
    will not hear of again, what it has not heard of; and of one that it never hears of, nothing."""
    yet = log.least[1:] - 1
    heard = log.most[:-1]
    limits = np.where(yet < FAR - 1, np.maximum(yet, heard), heard)
    limits[:, log.least[0] == FAR] = FAR
    limits[:, me] = heard[:, me]
    return np.maximum.accumulate(limits) if len(limits) else limits


def _rows_within(log: Log, limits: Ints) -> Ints:
    rising: Ints = np.concatenate(([0], log.ends))[log.looks_within(limits)]
    return rising


def _row_of(log: Log, upto: Ints) -> int:
    looks = int(log.looks_within(upto))
    return int(log.ends[looks - 1]) if looks else 0
