"""Messages that a watch has judged and forgotten: ranges of numbers, so that what comes late is
recognised, however long ago it was."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ordercast.pipeline.kernels.index import DELIVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.streaming.watch_log import Log

__all__ = ["Ledger", "Range"]

Pair = tuple[int, int, int]
"""Process, origin, number."""


class Range(Struct, frozen=True, array_like=True):
    """Messages `first` to `last` of one origin."""

    first: int
    last: int
    to: tuple[int, ...] | None
    """Whom they were for; None: everyone."""
    finished: bool
    """Were they delivered by everyone they were for?"""


class Ledger(Struct):
    ranges: dict[int, list[Range]] = {}
    """By origin, and then by number."""
    strays: set[Pair] = set()
    """Who delivered what was not for it: once more, and it has delivered it twice."""
    twice: set[Pair] = set()
    """Who delivered what more than once: each is counted once."""

    def __len__(self) -> int:
        return sum(map(len, self.ranges.values())) + len(self.strays) + len(self.twice)

    def gone(self, log: Log) -> Ints:
        """For each row, which of its origin's ranges its message is in; -1 for none."""
        found = np.full(len(log), -1)
        for origin, ranges in self.ranges.items():
            rows = np.flatnonzero((log.origin == origin) & (log.message >= 0))
            starts, ends = (
                np.array([getattr(r, end) for r in ranges]) for end in ("first", "last")
            )
            at = np.searchsorted(starts, log.number[rows], side="right") - 1
            inside = (at >= 0) & (log.number[rows] <= ends[at])
            found[rows[inside]] = at[inside]
        return found

    def add(self, log: Log, dropped: Bools, finished: Bools) -> None:
        """in: for each message of the log, is it forgotten, and was it delivered by everyone it
        was for"""
        rows = np.flatnonzero(log.message >= 0)
        _, at = np.unique(log.message[rows], return_index=True)
        of_message = rows[at]
        sends = np.flatnonzero(log.kind == SEND)
        of_message[log.message[sends]] = sends
        lists = log.table["destinations"].take(pa.array(of_message[dropped])).to_pylist()
        which = np.flatnonzero(dropped).tolist()
        self._add_odd(log, dict(zip(which, lists, strict=True)))
        for message, to in zip(which, lists, strict=True):
            row = of_message[message]
            number, done = int(log.number[row]), bool(finished[message])
            whom = None if to is None else tuple(to)
            mine = self.ranges.setdefault(int(log.origin[row]), [])
            mine.append(Range(number, number, whom, done))
        for origin, ranges in self.ranges.items():
            self.ranges[origin] = list(_merged(sorted(ranges, key=lambda one: one.first)))

    def _add_odd(self, log: Log, dropped: dict[int, list[int] | None]) -> None:
        """What was delivered to the wrong process, or twice, must not be counted once more.

        in: for each message that is forgotten, whom it was for
        """
        delivered = np.bincount(log.message[log.first], minlength=log.messages)
        astray = np.zeros(log.messages, np.bool_)
        gone = np.zeros(log.messages, np.bool_)
        for message, to in dropped.items():
            gone[message] = True
            astray[message] = to is not None and delivered[message] > len(set(to))
        rows = np.flatnonzero(log.kind == DELIVER)
        about = log.message[rows]
        for row in rows[gone[about] & (astray[about] | ~log.first[rows])].tolist():
            process, whom = int(log.process[row]), dropped[int(log.message[row])]
            pair = (process, int(log.origin[row]), int(log.number[row]))
            if not log.first[row]:
                self.twice.add(pair)
            elif whom is not None and process not in whom:
                self.strays.add(pair)

    def met(self) -> Iterator[tuple[int, tuple[int, ...] | None, int]]:
        """Origin, whom they were for, how many: of the messages that left nothing undone."""
        for origin, ranges in self.ranges.items():
            for one in ranges:
                if one.finished:
                    yield origin, one.to, one.last - one.first + 1

    def coarsen(self) -> None:
        """Forget whom messages were for, so that fewer ranges are left."""
        self.strays.clear()
        self.twice.clear()
        for origin, ranges in self.ranges.items():
            self.ranges[origin] = list(
                _merged([Range(one.first, one.last, None, finished=False) for one in ranges])
            )


def _merged(ranges: list[Range]) -> Iterator[Range]:
    """in: by number"""
    current = ranges[0]
    for one in ranges[1:]:
        alike = (one.to, one.finished) == (current.to, current.finished)
        if alike and one.first == current.last + 1:
            current = Range(current.first, one.last, one.to, one.finished)
        else:
            yield current
            current = one
    yield current
