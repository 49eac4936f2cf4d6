"""The first look at a huge run of any kind: how far each process has come, every so many rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ordercast.pipeline.huge.attempt import Each, dealt
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.huge.segments import WRONG, Part, check_health, rows_of_pieces
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels import sketch as k
from ordercast.pipeline.kernels.kernel import Ints
from ordercast.pipeline.rows import Piece

__all__ = ["FAR", "Log", "Sketch", "logs_of"]

EVERY = 4096
"""Rows between two looks at how far a process has come."""
FAR = 1 << 62
"""Instead of a number: there is no limit."""


class Sketch(msgspec.Struct, frozen=True):
    """One process's rows in one row group."""

    process: int
    part: Part
    first_position: int
    known: list[int]
    most: list[list[int]]
    """`kernels.sketch`, as is the next."""
    least: list[list[int]]

    @property
    def rows(self) -> int:
        return self.part.end - self.part.begin


def _sketch(pieces: Sequence[Piece], last: Ints, every: int, total: int) -> Iterator[Sketch]:
    """`last`: `kernels.sketch`; `every`: so many rows there is a look; `total`: how many rows the
    run has.

    Raises `Unhealthy` at the first row that does not fit.
    """
    members = len(last)
    for me, part, _, rows in rows_of_pieces(pieces, members):
        looks = -(-len(rows.kind) // every)
        known = np.empty(k.WIDTH, np.int64)
        most = np.zeros((looks, members), np.int64)
        least = np.full((looks, members), FAR)
        k.sketch.for_rows(total)(me, *rows, last, every, known, most, least)
        check_health(known, rows.position, WRONG | {s.RAGGED: _NOT_RISING})
        first = int(rows.position[0])
        yield Sketch(me, part, first, known.tolist(), most.tolist(), least.tolist())


@dataclass(frozen=True)
class Log:
    """One process's sketches together."""

    sketches: list[Sketch]
    first_row: Ints
    """Of each sketch, and at last how many rows there are."""
    ends: Ints
    """The row at which each look was taken …"""
    most: Ints
    """… (look × member) the greatest number that was sent or delivered by then …"""
    least: Ints
    """… and the smallest that is delivered after the look before."""

    @classmethod
    def of(cls, sketches: list[Sketch], members: int, every: int) -> Log:
        first_row = np.cumsum([0, *(one.rows for one in sketches)])
        ends = [
            np.minimum(np.arange(1, len(one.most) + 1) * every, one.rows) + begin
            for one, begin in zip(sketches, first_row, strict=False)
        ]
        nothing = np.empty((0, members), np.int64)
        most = np.concatenate([nothing, *(np.array(one.most) for one in sketches)])
        least = np.concatenate([nothing, *(np.array(one.least) for one in sketches)])
        return cls(
            sketches, first_row, np.concatenate([np.empty(0, np.int64), *ends]),
            np.maximum.accumulate(most), np.minimum.accumulate(least[::-1])[::-1],
        )  # fmt: skip

    @property
    def rows(self) -> int:
        return int(self.first_row[-1])

    @property
    def last_sent(self) -> int:
        return max((one.known[k.LAST_SENT] for one in self.sketches), default=0)

    @property
    def up(self) -> bool:
        """Not crashed in the end."""
        said = [one.known[s.DOWN] for one in self.sketches if one.known[s.DOWN] >= 0]
        return not said or said[-1] == 0

    def looks_within(self, upto: Ints) -> Ints:
        """How many looks see nothing beyond these numbers. in: … × member"""
        found = [
            np.searchsorted(self.most[:, o], upto[..., o], side="right")
            for o in range(upto.shape[-1])
        ]
        within: Ints = np.minimum.reduce(found)
        return within


def logs_of(pieces: Sequence[Piece], members: int, each: Each, tasks: int) -> list[Log]:
    """The first pass over the files. Raises `Unhealthy` if a second one would be for nothing.

    If numbers were delivered that are beyond all that were sent, it looks once more without them.
    """
    every, total = EVERY, sum(piece.rows for piece in pieces)
    last = np.full(members, FAR)

    def look(those: Sequence[Piece]) -> list[Sketch]:
        return list(_sketch(those, last, every, total))

    def all_logs() -> list[Log]:
        parts = each(look, dealt(pieces, tasks), list[Sketch])
        logs = _by_process((one for part in parts for one in part), members)
        return [Log.of(log, members, every) for log in logs]

    logs = all_logs()
    sent = np.array([log.last_sent for log in logs])
    if any(len(log.most) and (log.most[-1] > sent).any() for log in logs):
        last = sent
        logs = all_logs()
    return logs


def _by_process(sketches: Iterable[Sketch], members: int) -> list[list[Sketch]]:
    """Raises `Unhealthy` if a process's sketches do not follow one upon the other."""
    logs: list[list[Sketch]] = [[] for _ in range(members)]
    for one in sorted(sketches, key=lambda one: (one.process, one.first_position)):
        logs[one.process].append(one)
    for log in logs:
        position, sent = -1, 0
        for one in log:
            if one.first_position <= position:
                raise Unhealthy(WRONG[s.UNSORTED], unsorted=True)
            position = one.known[s.LAST_POSITION]
            if one.known[s.SENT]:
                if one.known[k.FIRST_SENT] <= sent:
                    raise Unhealthy(_NOT_RISING)
                sent = one.known[k.LAST_SENT]
    return logs


_NOT_RISING = "has messages that are not numbered in the order in which they were sent"
