"""A row group of a huge run: what its footer says of it, and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.pipeline.rows import Piece
from ordercast.pipeline.rules import plain
from ordercast.pipeline.shipping import local_path
from ordercast.trace.parquet import EVERYONE, statistics_of

__all__ = ["Footer", "Unhealthy", "Version", "footer", "read", "version"]


class Unhealthy(Exception):  # noqa: N818 - it is no error
    """The run cannot be judged this way; but perhaps, if it is only unsorted, once it is sorted."""

    def __init__(self, why: str, *, unsorted: bool = False) -> None:
        super().__init__(why)
        self.why = why
        """What it has, or is, that stands in the way: goes on after "it"."""
        self.unsorted = unsorted


class Footer(NamedTuple):
    owner: int | None
    """The process that all rows are of, if they are of one."""
    everyone: bool
    """All its messages are for everyone."""


def footer(piece: Piece) -> Footer:
    assert piece.groups is not None
    (index,) = piece.groups
    metadata = _opened(piece).metadata
    owner, named = None, False
    for place in range(metadata.num_columns):
        path = metadata.schema.column(place).path
        if path != "process" and not path.startswith("destinations."):
            continue
        found = statistics_of(metadata, index, place)
        if found is None:
            continue
        if path == "process":
            if found.has_min_max and not found.null_count:
                owner = found.min if found.min == found.max else None
        else:
            # If the file is a copy that somebody has edited, its own words may be those of another.
            named = found.null_count != metadata.row_group(index).column(place).num_values
    return Footer(owner, EVERYONE in (metadata.metadata or {}) and not named)


def read(piece: Piece, names: Sequence[str]) -> pa.Table:
    try:
        file = _opened(piece)
        present = [name for name in names if name in _names(file)]
        table = file.read_row_groups(list(piece.groups or ()), columns=present, use_threads=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise Unhealthy("has a file that cannot be read") from None
    for name in names:
        if name not in present:
            table = table.append_column(name, pa.nulls(len(table)))
    return plain(table)


class Version(NamedTuple):
    """A file, as long as it is unchanged."""

    path: Path
    size: int
    changed: int


def version(piece: Piece) -> Version:
    path = local_path(piece.token)
    about = path.stat()
    return Version(path, about.st_size, about.st_mtime_ns)


def _opened(piece: Piece) -> pq.ParquetFile:
    return _open(version(piece))


@lru_cache(maxsize=64)
def _open(file: Version) -> pq.ParquetFile:
    """Footers of large files are long: a task reads each but once."""
    return pq.ParquetFile(file.path, read_dictionary=["kind"])


@lru_cache(maxsize=64)
def _names(file: pq.ParquetFile) -> frozenset[str]:
    """Of the columns: put together anew at every look."""
    return frozenset(file.schema_arrow.names)
