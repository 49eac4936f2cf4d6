"""The rows that a block sees, and the messages in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ordercast.pipeline.arrays import destinations_of, ints_of, kinds_of
from ordercast.pipeline.blocks.found import Noted, Seen
from ordercast.pipeline.huge.found import Name
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.huge.segments import WRONG
from ordercast.pipeline.kernels import block as b
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.index import LEARN, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints

__all__ = ["NOTHING", "Apart", "Learnt", "Rows", "View", "among"]


class Learnt(msgspec.Struct, frozen=True, array_like=True):
    """The row by which a process got to know of a message that is set apart."""

    process: int
    row: int
    message: Name


class Apart(NamedTuple):
    """The messages that are set apart: all their rows, and how they became known."""

    seen: Sequence[Seen]
    learnt: Sequence[Learnt]

    @property
    def names(self) -> set[Name]:
        return {one.message for one in self.seen}


NOTHING = Apart([], [])


@dataclass
class Rows:
    """Sorted by process, and then as they are in its log."""

    process: Ints
    row: Ints
    kind: Ints
    origin: Ints
    number: Ints
    position: Ints | None
    readers: pa.ChunkedArray | None
    apart: Bools

    @classmethod
    def of(cls, table: pa.Table) -> Rows:
        """in: as `cutting.Logs.between` gives it"""
        has = table.column_names
        return cls(
            ints_of(table["process"], np.int32),
            ints_of(table["row"], np.int64),
            kinds_of(table["kind"]),
            ints_of(table["origin"], np.int32),
            ints_of(table["number"], np.int64),
            ints_of(table["position"], np.int64) if "position" in has else None,
            table["destinations"] if "destinations" in has else None,
            np.zeros(len(table), np.bool_),
        )

    @classmethod
    def apart_from(cls, apart: Apart) -> Rows:
        """Those of messages that are set apart, in no order."""
        seen = [
            *apart.seen,
            *(Seen(one.process, one.row, -1, LEARN, *one.message, None) for one in apart.learnt),
        ]
        column = {
            name: np.array([getattr(one, name) for one in seen], dtype)
            for name, dtype in _COLUMNS.items()
        }
        readers = pa.chunked_array([pa.array([one.readers for one in seen], _READERS)])
        return cls(**column, readers=readers, apart=np.ones(len(seen), np.bool_))

    def where(self, chosen: Bools | Ints) -> Rows:
        """in: which of the rows, or their places"""
        position = None if self.position is None else self.position[chosen]
        readers = self.readers
        if readers is not None and chosen.dtype == np.bool_:
            readers = readers.filter(pa.array(chosen))
        elif readers is not None:
            readers = readers.take(pa.array(chosen))
        return Rows(
            self.process[chosen], self.row[chosen], self.kind[chosen], self.origin[chosen],
            self.number[chosen], position, readers, self.apart[chosen],
        )  # fmt: skip

    def with_apart(self, apart: Apart) -> Rows:
        """All that is set apart, among the rest; a process knows what it learns by a row after that
        row."""
        if not apart.seen:
            return self
        mine, more = self.where(~among(self, apart.names)), Rows.apart_from(apart)
        process, row, kind, origin, number, apart_ = (
            np.concatenate((getattr(mine, name), getattr(more, name))) for name in (*_INTS, "apart")
        )
        position, readers = None, None
        if mine.position is not None and more.position is not None:
            position = np.concatenate((mine.position, more.position))
        if mine.readers is not None and more.readers is not None:
            readers = pa.chunked_array([*mine.readers.chunks, *more.readers.chunks], _READERS)
        return Rows(process, row, kind, origin, number, position, readers, apart_).in_order()

    def in_order(self) -> Rows:
        return self.where(np.lexsort((self.kind == LEARN, self.row, self.process)))

    def seen(self, chosen: Bools) -> list[Seen]:
        some = self.where(chosen)
        assert some.position is not None
        lists = [None] * len(some.row) if some.readers is None else some.readers.to_pylist()
        return [
            Seen(p, row, position, kind, o, n, readers if kind == SEND else None)
            for p, row, position, kind, o, n, readers in zip(
                some.process.tolist(), some.row.tolist(), some.position.tolist(),
                some.kind.tolist(), some.origin.tolist(), some.number.tolist(), lists, strict=True,
            )
        ]  # fmt: skip


_INTS = ("process", "row", "kind", "origin", "number")
_COLUMNS = dict(zip(_INTS, (np.int32, np.int64, np.int8, np.int32, np.int64), strict=True))
_COLUMNS["position"] = np.int64
_READERS = pa.list_(pa.int32())


def among(rows: Rows, names: Collection[Name]) -> Bools:
    """Which rows are of these messages."""
    found = np.zeros(len(rows.origin), np.bool_)
    for o in {origin for origin, _ in names}:
        found |= (rows.origin == o) & np.isin(rows.number, [n for p, n in names if p == o])
    return found


class View:
    def __init__(self, rows: Rows, size: int, low: Ints, high: Ints, total: int) -> None:
        """in: the rows of each log from and to which they are the block's own; of how many rows the
        whole run is, which says whether it is worth compiling what all blocks need"""
        self.rows, self.size, self.total = rows, size, total
        everyone = np.ones(len(rows.row), np.bool_)
        dest_start, dest = np.zeros(len(rows.row) + 1, np.int64), np.empty(0, np.int32)
        if rows.readers is not None:
            if sum(chunk.flatten().null_count for chunk in rows.readers.chunks):
                raise Unhealthy(WRONG[s.BROKEN])
            everyone, dest_start, dest = destinations_of(rows.readers)
        if len(dest) and not 0 <= dest.min() <= dest.max() < size:
            raise Unhealthy("has messages for processes that its manifest does not name")
        self.low, self.high = self._places(low), self._places(high)
        (
            self.starts, self.sent, self.base, self.message, self.origins, self.numbers, self.turn,
            self.fresh, self.first, self.marks, counted,
        ) = b.read_block.for_rows(total)(
            size, rows.process, rows.kind, rows.origin, rows.number, everyone.copy(),
            dest_start, dest.copy(), rows.apart, self.low, self.high,
        )  # fmt: skip
        self.delivered, self.repeated = counted.tolist()

    def _places(self, row: Ints) -> Ints:
        """Where these rows of the logs are among those that are here."""
        starts = np.searchsorted(self.rows.process, np.arange(self.size + 1))
        return np.array(
            [
                begin + np.searchsorted(self.rows.row[begin:end], row[p])
                for p, (begin, end) in enumerate(pairwise(starts.tolist()))
            ]
        )

    def name(self, m: int) -> Name:
        return int(self.origins[m]), int(self.numbers[m])

    def names(self, those: Ints) -> list[Name]:
        return list(zip(self.origins[those].tolist(), self.numbers[those].tolist(), strict=True))

    @cached_property
    def index(self) -> dict[Name, int]:
        return {name: m for m, name in enumerate(self.names(np.arange(len(self.origins))))}

    def position(self, row: int) -> int | None:
        if row < 0:
            return None
        assert self.rows.position is not None
        return int(self.rows.position[row])

    def noted(self, witness: Iterable[Ints]) -> list[Noted | None]:
        """in: `kernels.findings`"""
        return [self._noted(one) if one[f.PROCESS] >= 0 else None for one in witness]

    def _noted(self, one: Ints) -> Noted:
        process, row, m, n, other, link, missing, earlier, grade = one.tolist()
        return Noted(
            grade, process, self.position(row), self.name(m),
            self.name(n) if n >= 0 else None, other, link, bool(missing), self.position(earlier),
            bool(missing and self.turn[m] == b.LATE),
        )  # fmt: skip
