"""The first pass over a huge run: each piece of each process's log, looked at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.arrays import ints_of, kinds_of
from ordercast.pipeline.huge.groups import Unhealthy, footer, read
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.kernel import Ints
from ordercast.pipeline.rows import Piece
from ordercast.trace.outline import Outlined

__all__ = ["WRONG", "Part", "Segment", "check_health", "rows_of_pieces", "scan_pieces"]

ROUGH = 4096
"""How many runs of numbers a segment may have beyond one for each origin: a message that is missing
makes one more, one that is out of place makes two or three."""


class Part(msgspec.Struct, frozen=True):
    """Some rows of a row group."""

    piece: Piece
    begin: int
    end: int
    told: Outlined | None = None
    """What the file itself says of them: whoever reads them sees whether it is true."""


class Segment(msgspec.Struct, frozen=True):
    """One process's rows in one row group."""

    process: int
    part: Part
    first_position: int
    known: list[int]
    """`kernels.scan`"""
    runs: list[tuple[int, int, int]]
    """What it delivered and sent: origin, and the first and last of numbers in a row."""
    some: list[tuple[int, list[int]]]
    """The numbers of messages that it did not send to everyone, and whom they are for."""

    @property
    def rough(self) -> int:
        """How many runs it has beyond one for each origin."""
        return len(self.runs) - len({origin for origin, _, _ in self.runs})


def scan_pieces(pieces: Sequence[Piece], members: int) -> Iterator[Segment]:
    """Raises `Unhealthy` at the first row that does not fit."""
    for me, part, columns, rows in rows_of_pieces(pieces, members):
        known = np.empty(s.WIDTH, np.int64)
        runs = np.empty((members + 1 + ROUGH, 3), np.int64)
        many = s.scan.compiled(me, members, *rows, known, runs)
        check_health(known, rows.position, WRONG)
        yield Segment(
            me, part, int(rows.position[0]), known.tolist(),
            [(o, first, last) for o, first, last in runs[:many].tolist()],
            _addressed(columns, part.begin, part.end, members),
        )  # fmt: skip


class LogRows(NamedTuple):
    position: Ints
    kind: Ints
    origin: Ints
    number: Ints


def rows_of_pieces(
    pieces: Sequence[Piece], members: int
) -> Iterator[tuple[int, Part, pa.Table, LogRows]]:
    """Whose rows they are, where, all columns of the piece, and these rows' own."""
    for piece in pieces:
        owners, columns = _log_rows(piece)
        position = ints_of(columns["position"], np.int64)
        kind = kinds_of(columns["kind"])
        origin = ints_of(columns["origin"], np.int32)
        number = ints_of(columns["number"], np.int64)
        for begin, end, me in owners:
            if not 0 <= me < members:
                raise Unhealthy("has events of a process that its manifest does not name")
            mine = (column[begin:end] for column in (position, kind, origin, number))
            yield me, Part(piece, begin, end), columns, LogRows(*mine)


def check_health(known: Ints, position: Ints, words: Mapping[int, str]) -> None:
    """in: what a kernel says of rows, and what to call that"""
    if known[s.HEALTHY] != s.FINE or position[0] < 0:
        wrong = int(known[s.HEALTHY]) or s.BROKEN
        raise Unhealthy(words[wrong], unsorted=wrong == s.UNSORTED)


WRONG = {
    s.UNSORTED: "has rows that are out of order",
    s.BROKEN: "has rows that cannot be used",
    s.RAGGED: "has too many messages out of order, missing, repeated or not for everyone",
}


def _addressed(
    columns: pa.Table, begin: int, end: int, members: int
) -> list[tuple[int, list[int]]]:
    """The messages that were sent to some members only, and to which."""
    if "destinations" not in columns.column_names:
        return []
    lists = columns["destinations"].slice(begin, end - begin)
    if lists.null_count == len(lists):
        return []
    least = pc.min_max(pa.chunked_array([chunk.flatten() for chunk in lists.chunks]))["min"].as_py()
    if least is not None and least < 0:
        raise Unhealthy(WRONG[s.BROKEN])
    mine = columns.slice(begin, end - begin)
    chosen = mine.filter(pc.and_(pc.is_valid(lists), pc.equal(mine["kind"].cast("string"), "send")))
    if len(chosen) > ROUGH:
        raise Unhealthy("has too many messages that are not for everyone")
    found = []
    for number, those in zip(
        chosen["number"].to_pylist(), chosen["destinations"].to_pylist(), strict=True
    ):
        readers = sorted(set(those))
        if not all(p is not None and 0 <= p < members for p in readers):
            raise Unhealthy("has messages for processes that its manifest does not name")
        if len(readers) < members:
            found.append((number, readers))
    return found


def _log_rows(piece: Piece) -> tuple[list[tuple[int, int, int]], pa.Table]:
    """Which rows are whose (from, to, process), and the columns that must be looked at: what the
    footer tells need not be read."""
    names = ["position", "kind", "origin", "number"]
    told = footer(piece)
    if told.owner is None:
        names.append("process")
    if not told.everyone:
        names.append("destinations")
    table = read(piece, names)
    if told.owner is not None:
        return [(0, len(table), told.owner)], table
    process = ints_of(table["process"], np.int64)
    edges = [0, *(np.flatnonzero(np.diff(process)) + 1).tolist(), len(process)]
    return [(begin, end, int(process[begin])) for begin, end in pairwise(edges)], table
