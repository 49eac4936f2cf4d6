"""A huge run in counts, and how it is cut into windows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from ordercast.pipeline.huge.apart import Apart
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.huge.segments import Part, Segment
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.trace.verdicts import PROPERTIES

__all__ = [
    "CELLS",
    "RANKED",
    "TOTAL",
    "WINDOWED",
    "Stretch",
    "Tally",
    "Window",
    "windows",
]

CELLS = 6_000_000
"""Messages × members in one window: what its task holds in memory is some 60 bytes for each, or
half of that if only causal order is asked for."""
TOTAL = ("total_pairwise", "total_acyclic", "total_gap_free")
RANKED = (*TOTAL, "synchronous")
WINDOWED = ("causal", *RANKED)
"""The properties that take a second pass."""


class Log(NamedTuple):
    """One process's segments in order, and what it had done before each (and in the end), but for
    what is set apart."""

    segments: list[Segment]
    delivered: Ints
    """(segments + 1) × origins"""
    sent: Ints
    merged: int
    """How many of its own messages it delivered right after it had sent them."""
    down: bool


@dataclass(frozen=True)
class Tally:
    """A run in counts, as it is without what is set apart: it is healthy then."""

    logs: list[Log]
    apart: Apart
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
    def of(cls, logs: Sequence[Sequence[Segment]], apart: Apart) -> Tally:
        """in: each process's segments in order, see `apart.by_process`"""
        found = [_log(p, list(segments), apart) for p, segments in enumerate(logs)]
        sent = np.array([log.sent[-1] for log in found])
        whole = [p for p, log in enumerate(found) if (log.delivered[-1] == sent).all()]
        return cls(found, apart, whole[0])


def _log(me: int, segments: list[Segment], apart: Apart) -> Log:
    members = len(apart.spans)
    delivered = np.zeros((len(segments) + 1, members), np.int64)
    sent = np.zeros(len(segments) + 1, np.int64)
    merged, tail, down, previous = 0, s.NOTHING, False, -1
    for i, one in enumerate(segments):
        known = one.known
        if one.first_position <= previous:
            raise Unhealthy("has rows that are out of order", unsorted=True)
        previous = known[s.LAST_POSITION]
        delivered[i + 1], sent[i + 1] = delivered[i], sent[i]
        for o, first, last in one.runs:
            origin = me if o == members else o
            before, after = apart.place(origin, first - 1), apart.place(origin, last)
            counted = sent[i + 1 : i + 2] if o == members else delivered[i + 1, o : o + 1]
            if after > before:
                assert counted[0] == before
                counted[0] = after
        if known[s.HEAD] != s.NOTHING:
            merged += known[s.ADJACENT] + (known[s.HEAD] > 0 and known[s.HEAD] == tail)
            tail = known[s.TAIL]
        if known[s.DOWN] >= 0:
            down = known[s.DOWN] == 1
    return Log(segments, delivered, sent, merged, down)


class Stretch(msgspec.Struct, frozen=True):
    """The part of a process's log that a window needs."""

    parts: list[Part]
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
    cells = CELLS if any(name in properties for name in RANKED) else 2 * CELLS
    done = log.delivered.sum(axis=1)
    # A multiple, so that no task is left over for whoever is done first.
    many = max(1, -(-int(done[-1]) // (max(cells // members, 1) * least)) * least)
    inner = np.searchsorted(done, done[-1] * np.arange(1, many) // many)
    cuts = np.unique([0, *inner, len(log.segments)]).tolist()
    last = tally.delivered.tolist()
    for begin, end in pairwise(cuts):
        low, high = log.delivered[begin], log.delivered[end]
        if (low == high).all():
            continue
        stretches = [_stretch(p, one, low, high) for p, one in enumerate(tally.logs)]
        yield Window(low.tolist(), high.tolist(), last, tally.reference, stretches)


def _stretch(me: int, log: Log, low: Ints, high: Ints) -> Stretch:
    """All segments from the first that has something of the window, or after it, to the last that
    has something of it, or before it."""
    from_here = (log.delivered[1:] > low).any(axis=1) | (log.sent[1:] > low[me])
    upto_here = (log.delivered[:-1] < np.minimum(high, log.delivered[-1])).any(axis=1) | (
        log.sent[:-1] < high[me]
    )
    mine = np.flatnonzero(from_here & upto_here)
    begin, end = (int(mine[0]), int(mine[-1]) + 1) if len(mine) else (len(log.segments),) * 2
    return Stretch(
        parts=[one.part for one in log.segments[begin:end]],
        delivered=log.delivered[begin].tolist(),
        sent=int(log.sent[begin]),
        ends=log.delivered[end].tolist(),
        sent_ends=int(log.sent[end]),
    )
