"""The rows of one block: exactly where it is cut, and what lies between."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.pipeline.arrays import ints_of, kinds_of
from ordercast.pipeline.blocks.plan import Stretch
from ordercast.pipeline.huge.groups import Unhealthy, read
from ordercast.pipeline.huge.segments import Part
from ordercast.pipeline.kernels import sketch as k
from ordercast.pipeline.kernels.kernel import Ints

__all__ = ["COLUMNS", "Cut", "Logs"]

COLUMNS = ("position", "kind", "origin", "number", "destinations")


class Cut(NamedTuple):
    """Through all logs, so that whatever was delivered before it was sent before it."""

    row: Ints
    """How many rows of each process are before it."""
    sent: Ints
    """The number up to which each process's messages were sent before it."""


class Logs:
    def __init__(self, stretches: Sequence[Stretch], last: Ints, columns: Sequence[str]) -> None:
        """in: the number of each process's last message; which of `COLUMNS` are needed"""
        self._stretches, self._last = stretches, last
        self.rows = np.array([one.rows for one in stretches])
        self._read = lru_cache(maxsize=None)(partial(_read, columns))

    @property
    def start(self) -> Cut:
        return Cut(np.zeros_like(self.rows), np.zeros_like(self.rows))

    @property
    def end(self) -> Cut:
        return Cut(self.rows, np.array([one.states[-1].sent for one in self._stretches]))

    def cut(self, limit: Ints) -> Cut:
        """The last one with no message beyond these numbers before it.

        If someone must stop before it has sent all that it might, nobody may have delivered what it
        sends after that, so that others must stop earlier; and so on, until nobody must.
        """
        upto = limit.copy()
        row = np.full(len(upto), -1)
        changed = True
        while changed:
            changed = False
            for p in range(len(upto)):
                row[p], sent = self._first_beyond(p, upto)
                if sent < upto[p]:
                    upto[p] = sent
                    changed = True
        return Cut(row, upto)

    def _first_beyond(self, p: int, upto: Ints) -> tuple[int, int]:
        stretch = self._stretches[p]
        if (stretch.states[0].most > upto).any():
            raise Unhealthy("has processes that are too far apart")
        for i, part in enumerate(stretch.parts):
            before, after = stretch.states[i], stretch.states[i + 1]
            if (after.most <= upto).all():
                continue
            kind, origin, number, _ = self._read(part)
            row, sent = k.first_beyond.for_rows(int(self.rows.sum()))(
                p, kind, origin, number, upto, self._last, before.sent
            )
            if row < len(kind):
                return before.row + row, sent
        end = stretch.states[-1]
        if end.row < stretch.rows:
            raise Unhealthy("has processes that are too far apart")
        return end.row, end.sent

    def between(self, low: Cut, high: Cut) -> pa.Table:
        """The columns; whose rows they are (`process`), and where in its log (`row`)."""
        found: list[pa.Table] = []
        for p, stretch in enumerate(self._stretches):
            for state, part in zip(stretch.states, stretch.parts, strict=False):
                first = max(int(low.row[p]) - state.row, 0)
                last = min(int(high.row[p]) - state.row, part.end - part.begin)
                if first >= last:
                    continue
                *_, table = self._read(part)
                mine = table.slice(first, last - first)
                rows = np.arange(state.row + first, state.row + last)
                mine = mine.append_column("row", pa.array(rows))
                found.append(
                    mine.append_column("process", pa.array(np.full(len(mine), p, np.int32)))
                )
        return pa.concat_tables(found) if found else _NOTHING


def _read(columns: Sequence[str], part: Part) -> tuple[Ints, Ints, Ints, pa.Table]:
    table = read(part.piece, columns).slice(part.begin, part.end - part.begin)
    for i, name in enumerate(columns):
        if name == "destinations":
            table = table.set_column(i, name, table[name].cast(pa.list_(pa.int32())))
    kind = kinds_of(table["kind"])
    return kind, ints_of(table["origin"], np.int32), ints_of(table["number"], np.int64), table


_NOTHING = pa.schema(
    {
        "position": pa.int64(),
        "kind": pa.dictionary(pa.int32(), pa.string()),
        "origin": pa.int32(),
        "number": pa.int64(),
        "destinations": pa.list_(pa.int32()),
        "row": pa.int64(),
        "process": pa.int32(),
    }
).empty_table()
