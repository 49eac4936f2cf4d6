"""The messages that are set apart, each with what every process had done when it met it.

What comes before and after such a message at a process is told by counts: of each origin, how many
regular messages the process had delivered by then. So each one can be compared with all regular
messages at once, and no row need be looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ordercast.pipeline.huge.sightings import Sighting
from ordercast.pipeline.huge.spans import Spans, union
from ordercast.pipeline.huge.tally import Log, Tally
from ordercast.pipeline.kernels import apart as a
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.index import SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints

__all__ = ["NOWHERE", "Aside"]

NOWHERE = 2**62
"""Instead of a position: it never was."""


@dataclass
class Aside:
    """Arrays by message, and then by process (p) and origin (o). What is counted are regular
    messages only."""

    names: list[tuple[int, int]]
    members: int
    origin: Ints = field(init=False)
    sent_at: Ints = field(init=False)
    """The position of its send at its origin, or NOWHERE."""
    sent_had: Ints = field(init=False)
    """(o) What its origin had delivered by then …"""
    sent_sent: Ints = field(init=False)
    """… and sent."""
    to: Bools = field(init=False)
    """(p) It was sent, and to this one."""
    at: Ints = field(init=False)
    """(p) The position of its first delivery, or NOWHERE …"""
    again: Ints = field(init=False)
    """(p) … and of its second."""
    had: Ints = field(init=False)
    """(p, o) What the process had delivered by its first delivery, or will have in the end …"""
    had_sent: Ints = field(init=False)
    """(p) … and sent."""
    extra: list[int] = field(default_factory=list)
    """By how many points the chain of each process, see `kernels.cycles`, is longer."""

    def __post_init__(self) -> None:
        size, n = len(self.names), self.members
        self.origin = np.array([o for o, _ in self.names], np.int64)
        self.sent_at, self.sent_sent = (np.full(size, value, np.int64) for value in (NOWHERE, 0))
        self.sent_had = np.zeros((size, n), np.int64)
        self.to = np.zeros((size, n), np.bool_)
        self.at, self.again = (np.full((size, n), NOWHERE, np.int64) for _ in range(2))
        self.had, self.had_sent = np.zeros((size, n, n), np.int64), np.zeros((size, n), np.int64)

    @property
    def sent(self) -> Bools:
        found: Bools = self.sent_at != NOWHERE
        return found

    @property
    def delivered(self) -> Bools:
        """(p)"""
        found: Bools = self.at != NOWHERE
        return found

    @classmethod
    def of(
        cls,
        tally: Tally,
        names: Sequence[tuple[int, int]],
        sightings: Sequence[Mapping[int, Sighting]],
    ) -> Aside:
        """in: for each process, by segment, what was sighted there"""
        aside = cls(list(names), len(tally.logs))
        some = {
            (p, number): readers
            for p, log in enumerate(tally.logs)
            for one in log.segments
            for number, readers in one.some
        }
        which = {name: m for m, name in enumerate(names)}
        for p, (log, found) in enumerate(zip(tally.logs, sightings, strict=True)):
            aside.had[:, p], aside.had_sent[:, p] = log.delivered[-1], log.sent[-1]
            rows = _rows(log, found)
            aside.extra.append(aside._enter(p, rows, which))
        for m, name in enumerate(names):
            aside.to[m] = aside.sent[m]
            if name in some:
                aside.to[m] = np.isin(np.arange(aside.members), some[name])
        return aside

    def _enter(self, p: int, rows: Ints, which: Mapping[tuple[int, int], int]) -> int:
        """Enters the rows of one process; returns by how many points its chain is longer."""
        n = self.members
        points, split = 0, set()
        last: tuple[int, Ints] | None = None
        for row in rows:
            m = which[int(row[a.ORIGIN]), int(row[a.NUMBER])]
            counted = row[a.FIELDS :]
            if row[a.KIND] == SEND:
                self.sent_at[m] = row[a.POSITION]
                self.sent_had[m], self.sent_sent[m] = counted[:n], counted[n]
            elif self.at[m, p] == NOWHERE:
                self.at[m, p] = row[a.POSITION]
                self.had[m, p], self.had_sent[m, p] = counted[:n], counted[n]
            else:
                self.again[m, p] = min(self.again[m, p], row[a.POSITION])
                continue
            # What is delivered right after it was sent is one point, unless something is between.
            if last is not None and last[0] == m and (last[1] == counted).all():
                continue
            last = (m, counted)
            points += 1
            if row[a.PREVIOUS] > 0 and row[a.PREVIOUS] == row[a.NEXT]:
                split.add(int(row[a.PREVIOUS]))
        return points + len(split)

    def excess(self) -> list[Spans]:
        """By origin, the places of regular messages that somebody lacked when it delivered one of
        these, though its origin had sent or delivered them before it sent that."""
        needs = self.sent_had.copy()
        mine = np.arange(len(self.names))
        needs[mine, self.origin] = np.maximum(needs[mine, self.origin], self.sent_sent)
        lacking = (self.sent[:, None] & self.delivered)[:, :, None] & (needs[:, None] > self.had)
        found: list[Spans] = [[] for _ in range(self.members)]
        for m, p, o in np.argwhere(lacking).tolist():
            found[o].append((int(self.had[m, p, o]) + 1, int(needs[m, o])))
        return [union(spans) for spans in found]


def _rows(log: Log, found: Mapping[int, Sighting]) -> Ints:
    """All rows of one process, with what it had done before them since the beginning, and with
    their regular neighbours, also those in other segments."""
    heads, tails = _borders(log)
    rows = []
    for i in sorted(found):
        for row in found[i].rows:
            one = np.array(row)
            one[a.FIELDS :] += np.append(log.delivered[i], log.sent[i])
            if one[a.PREVIOUS] == s.NOTHING:
                one[a.PREVIOUS] = tails[i]
            if one[a.NEXT] == s.NOTHING:
                one[a.NEXT] = heads[i]
            rows.append(one)
    return np.array(rows, np.int64)


def _borders(log: Log) -> tuple[list[int], list[int]]:
    """For each segment the head of the nearest one after it that has a regular send or delivery,
    and the tail of the nearest one before it."""
    heads, tails = [0] * len(log.segments), [0] * len(log.segments)
    last = 0
    for i, one in enumerate(log.segments):
        tails[i] = last
        if one.known[s.TAIL] != s.NOTHING:
            last = one.known[s.TAIL]
    last = 0
    for i in reversed(range(len(log.segments))):
        heads[i] = last
        if log.segments[i].known[s.HEAD] != s.NOTHING:
            last = log.segments[i].known[s.HEAD]
    return heads, tails
