"""The first pass over a huge run: each piece of each process's log, looked at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.pipeline.arrays import ints_of, kinds_of
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.rows import Piece
from ordercast.pipeline.shipping import local_path
from ordercast.trace.parquet import EVERYONE

__all__ = ["Segment", "Unhealthy", "read", "scan_pieces"]


class Unhealthy(Exception):  # noqa: N818 - it is no error
    """The run cannot be judged this way; but perhaps, if it is only unsorted, once it is sorted."""

    def __init__(self, *, unsorted: bool = False) -> None:
        super().__init__()
        self.unsorted = unsorted


class Segment(msgspec.Struct, frozen=True):
    """One process's rows in one row group."""

    process: int
    piece: Piece
    begin: int
    end: int
    first_position: int
    known: list[int]
    """`kernels.scan`"""
    low: list[int]
    high: list[int]


def scan_pieces(pieces: Sequence[Piece], members: int) -> Iterator[Segment]:
    """Raises `Unhealthy` at the first row that does not fit."""
    for piece in pieces:
        process, columns = _log_rows(piece)
        position = ints_of(columns["position"], np.int64)
        kind = kinds_of(columns["kind"])
        origin = ints_of(columns["origin"], np.int32)
        number = ints_of(columns["number"], np.int64)
        for begin, end, me in process:
            known = np.empty(s.WIDTH, np.int64)
            low, high = np.empty(members, np.int64), np.empty(members, np.int64)
            rows = slice(begin, end)
            if not 0 <= me < members:
                raise Unhealthy
            s.scan.compiled(
                me, members, position[rows], kind[rows], origin[rows], number[rows],
                known, low, high,
            )  # fmt: skip
            if known[s.HEALTHY] != s.FINE or position[begin] < 0:
                raise Unhealthy(unsorted=known[s.HEALTHY] == s.UNSORTED)
            yield Segment(
                me, piece, begin, end, int(position[begin]),
                known.tolist(), low.tolist(), high.tolist(),
            )  # fmt: skip


def _log_rows(piece: Piece) -> tuple[list[tuple[int, int, int]], pa.Table]:
    """Which rows are whose (from, to, process), and the columns that must be looked at: what the
    footer tells need not be read."""
    names = ["position", "kind", "origin", "number"]
    told = _footer(piece)
    owner = told.get("process")
    if owner is None or owner[0] != owner[1]:
        names.append("process")
    if not told.get("destinations"):
        names.append("destinations")
    table = read(piece, names)
    if "destinations" in names and table["destinations"].null_count < len(table):
        raise Unhealthy
    if "process" not in names:
        assert owner is not None
        return [(0, len(table), owner[0])], table
    process = ints_of(table["process"], np.int64)
    edges = [0, *(np.flatnonzero(np.diff(process)) + 1).tolist(), len(process)]
    return [(begin, end, int(process[begin])) for begin, end in pairwise(edges)], table


def _footer(piece: Piece) -> dict[str, Any]:
    """The bounds of the row group's processes, and whether all its messages are for everyone."""
    assert piece.groups is not None
    (index,) = piece.groups
    footer = _opened(piece).metadata
    told: dict[str, Any] = {"destinations": EVERYONE in (footer.metadata or {})}
    group = footer.row_group(index)
    for place in range(group.num_columns):
        column = group.column(place)
        found, name = column.statistics, column.path_in_schema
        if found is None:
            continue
        if name == "process" and found.has_min_max and not found.null_count:
            told["process"] = (found.min, found.max)
    return told


def read(piece: Piece, names: Sequence[str]) -> pa.Table:
    try:
        file = _opened(piece)
        present = [name for name in names if name in file.schema_arrow.names]
        table = file.read_row_groups(list(piece.groups or ()), columns=present, use_threads=False)
    except (pa.ArrowException, OSError):
        raise Unhealthy from None
    for name in names:
        if name not in present:
            table = table.append_column(name, pa.nulls(len(table)))
    return table


def _opened(piece: Piece) -> pq.ParquetFile:
    path = local_path(piece.token)
    about = path.stat()
    return _open(path, about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=64)
def _open(path: Path, size: int, changed: int) -> pq.ParquetFile:
    """Footers of large files are long: a task reads each but once, as long as it is unchanged."""
    return pq.ParquetFile(path, read_dictionary=["kind"])
