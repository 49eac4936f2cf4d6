"""Where the messages that are set apart were sent and delivered: a look at the segments that have
some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from ordercast.pipeline.arrays import ints_of, kinds_of
from ordercast.pipeline.huge.apart import Apart
from ordercast.pipeline.huge.groups import read
from ordercast.pipeline.huge.segments import Segment
from ordercast.pipeline.kernels import apart as a
from ordercast.pipeline.kernels.kernel import Ints

__all__ = ["Sighting", "has_some", "sight"]

_ROOM = 64


class Sighting(msgspec.Struct, frozen=True):
    """The rows of messages set apart in one segment."""

    known: list[int]
    """`kernels.scan`, as it is without them."""
    rows: list[list[int]]
    """`kernels.apart`"""


def has_some(segment: Segment, apart: Apart) -> bool:
    members = len(apart.spans)
    for o, first, last in segment.runs:
        origin = segment.process if o == members else o
        if not apart.spans[origin]:
            continue
        if apart.place(origin, last) - apart.place(origin, first - 1) < last - first + 1:
            return True
    return False


def sight(segments: Sequence[Segment], apart: Apart) -> Iterator[Sighting]:
    """in: segments that have some"""
    members = len(apart.spans)
    for one in segments:
        part = one.part
        table = read(part.piece, ("position", "kind", "origin", "number"))
        table = table.slice(part.begin, part.end - part.begin)
        columns = (
            ints_of(table["position"], np.int64),
            kinds_of(table["kind"]),
            ints_of(table["origin"], np.int32),
            ints_of(table["number"], np.int64),
        )
        known = np.array(one.known)
        room = _ROOM
        while True:
            rows: Ints = np.empty((room, a.FIELDS + members + 1), np.int64)
            many = a.sight.compiled(one.process, members, *columns, *apart.arrays, known, rows)
            if many <= room:
                break
            room = many
        yield Sighting(known.tolist(), rows[:many].tolist())
