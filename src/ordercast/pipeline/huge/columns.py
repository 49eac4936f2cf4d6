"""The rows of a huge run as its windows need them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ordercast.pipeline.arrays import ints_of, kinds_of
from ordercast.pipeline.huge.apart import Apart
from ordercast.pipeline.huge.groups import Version, read, version
from ordercast.pipeline.huge.segments import Part
from ordercast.pipeline.huge.told import verify
from ordercast.pipeline.kernels import apart as a
from ordercast.pipeline.kernels.kernel import Ints

__all__ = ["Columns", "Reader", "columns_of", "stripped"]

Columns = tuple[Ints, Ints, Ints]
"""kind, origin, and number or place"""

_Key = tuple[Version, tuple[int, ...] | None, int, int, bool]
_LEFT: dict[_Key, Columns] = {}
"""What the last window in this process had at its end."""
_LEFT_MOST = 4_000_000
"""Rows, of 13 bytes."""


class Reader:
    """Reads one window's rows. Each log has a piece or two that the next window needs as well:
    whoever judges that one right after this one reads them once."""

    def __init__(self, apart: Apart) -> None:
        self._apart = apart
        self._members = len(apart.spans)
        self._before = dict(_LEFT)
        self._rows = 0
        _LEFT.clear()

    def columns(self, parts: Sequence[Part], i: int) -> Columns:
        """Of one of the parts that a log has in this window, without what is set apart."""
        one = parts[i]
        key = version(one.piece), one.piece.groups, one.begin, one.end, one.told is not None
        found = self._before.pop(key, None) or columns_of(one, self._members)
        if i >= len(parts) - 2 and self._rows + len(found[0]) <= _LEFT_MOST:
            self._rows += len(found[0])
            _LEFT[key] = found
        return stripped(found, self._apart)[0]


def columns_of(one: Part, members: int) -> Columns:
    told = one.told is not None
    names = ("kind", "origin", "number", *(("position",) if told else ()))
    table = read(one.piece, names).slice(one.begin, one.end - one.begin)
    kind = kinds_of(table["kind"])
    origin, number = ints_of(table["origin"], np.int32), ints_of(table["number"], np.int64)
    if told:
        position = ints_of(table["position"], np.int64)
        verify(one, members, position, kind, origin, number)
    return kind, origin, number


def stripped(columns: Columns, apart: Apart) -> tuple[Columns, Ints | slice]:
    """in: kind, origin and number; out: kind, origin and place of the rows that are not of messages
    set apart, and which they are"""
    if not any(apart.spans):
        return columns, slice(None)
    kind, origin, number = columns
    kept, places = np.empty(len(kind), np.int64), np.empty(len(kind), np.int64)
    many = a.strip.compiled(kind, origin, number, *apart.arrays, kept, places)
    if many == len(kind):
        places.flags.writeable = False
        return (kind, origin, places), slice(None)
    kept = kept[:many]
    left = kind[kept], origin[kept], places[:many]
    for column in left:
        column.flags.writeable = False  # the compiler makes a difference
    return left, kept
