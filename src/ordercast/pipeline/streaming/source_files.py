"""The files of a directory that a trace is being written to: how far each can be read, and the rows
from there to here.

What is followed: the members' logs (`NAME-0001.spans`), as `ordercast.join(trace=…)` and
`ordercast run` write them; without any, the files that `verify` would read.
A place is a byte of a log or of JSON lines, always the end of a whole record; of Parquet it is a
number of row groups, and a file without a footer is not there yet. Where nothing can follow
(`ended`), the last line needs no end, and a Parquet file must be whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.pipeline.rules import check_schema, flaws
from ordercast.trace.directory import event_files, require_file
from ordercast.trace.event import Event
from ordercast.trace.jsonl import decode_event
from ordercast.trace.parquet import arrow_schema, to_table, unreadable
from ordercast.trace.spans import SUFFIX, Head, Span, log_files, whole_records
from ordercast.trace.unrolled import tables_of

__all__ = ["Place", "Stretch", "followed", "is_at_end", "reach", "read_head", "read_stretch"]

_MAGIC = b"PAR1"
_EDGE = 4096
"""How many bytes a file is known again by, at its beginning and before a place."""


class Place(Struct, frozen=True, omit_defaults=True):
    """How far a file was read."""

    at: int = 0
    rows: int = 0
    """Before it: of a log, the position of the next row less that of the first; of JSON lines, the
    lines that have an end."""
    mark: str = ""
    """What the file is known again by. Checkpoints from before have none, and are believed."""


class Stretch(Struct, frozen=True):
    """From one place to another."""

    file: str
    start: Place
    end: Place


def followed(path: Path) -> list[Path]:
    """The files that are there now, in a fixed order."""
    if path.is_file() and path.suffix == SUFFIX:
        return [path]
    if path.is_dir() and (logs := log_files(path)):
        return logs
    try:
        files = event_files(path)
    except TraceError as error:
        if path.is_dir() and str(error).startswith(f"{path}: "):
            return []  # it is about none of the files in it: there is nothing yet
        raise
    for file in files:
        require_file(file)
    return files


def reach(file: Path, start: Place, *, most_bytes: int, ended: bool = False) -> Place:
    """How far the file can be read now, by about that many bytes at most."""
    try:
        if file.suffix == ".parquet":
            return _reach_groups(file, start, most_bytes, ended=ended)
        return _reach_bytes(file, start, most_bytes, ended=ended)
    except FileNotFoundError:
        return start  # it was removed once it was read, as logs are


def is_at_end(file: Path, place: Place) -> bool:
    """Was all of it read? Half a line and half a Parquet file may become whole; half a record of a
    log is what a killed member left, and has not happened."""
    try:
        if file.suffix == ".jsonl":
            return place.at >= file.stat().st_size
        if file.suffix == ".parquet":
            if not _has_footer(file):
                return False
            with _parquet(file) as parquet:
                return bool(place.at >= parquet.num_row_groups)
    except FileNotFoundError:
        return True
    return reach(file, place, most_bytes=1) == place


def read_stretch(stretch: Stretch) -> Iterator[pa.Table]:
    """Its rows, as `arrow_schema` has them."""
    file = Path(stretch.file)
    try:
        if file.suffix == ".parquet":
            yield from _read_groups(file, stretch)
            return
        _require_same(file, stretch.end, stretch.end.at)
        data = _bytes(file, stretch.start.at, stretch.end.at)
        if file.suffix == ".jsonl":
            yield to_table(_events(file, data, stretch.start.rows))
            return
        head = read_head(file)
    except FileNotFoundError:
        raise TraceError(f"{file}: it was removed before all of it was read") from None
    records = whole_records(data, where=str(file), start=stretch.start.at)
    spans = [record for record, _ in records if isinstance(record, Span)]
    yield from tables_of(head, spans, position=head.position + stretch.start.rows)


def read_head(file: Path) -> Head:
    with file.open("rb") as log:
        data = log.read(4)
        data += log.read(int.from_bytes(data, "big"))
    for record, _ in whole_records(data, where=str(file)):
        if isinstance(record, Head):
            return record
    raise TraceError(f"{file}: not a log of spans: it does not say whose it is")


def _bytes(file: Path, start: int, end: int) -> bytes:
    with file.open("rb") as data:
        data.seek(start)
        return data.read(end - start)


def _mark(file: Path, end: int) -> str:
    """A few letters that change if what the file has up to this byte does. Not its inode: a file
    that was copied is the same, and one that was written over is not."""
    begins = _bytes(file, 0, min(end, _EDGE))
    ends = _bytes(file, max(end - _EDGE, 0), end)
    return hashlib.blake2b(b"%d " % end + begins + ends, digest_size=8).hexdigest()


def _require_same(file: Path, place: Place, end: int) -> None:
    """in: end: the byte at which the place is"""
    if place.mark and _mark(file, end) != place.mark:
        raise _anew(file)


def _anew(file: Path) -> TraceError:
    return TraceError(
        f"{file}: what was read of it is no longer in it: it was written anew; watch it with a new "
        "checkpoint"
    )


def _reach_bytes(file: Path, start: Place, most_bytes: int, *, ended: bool) -> Place:
    size = file.stat().st_size
    if size < start.at:
        raise TraceError(
            f"{file}: {start.at} bytes of it were read, and now it has {size}: it was written "
            "anew; watch it with a new checkpoint"
        )
    _require_same(file, start, start.at)
    end = min(size, start.at + most_bytes)
    data = _bytes(file, start.at, end)
    at, rows = start.at, start.rows
    if file.suffix == ".jsonl":
        whole = data if ended and end == size else data[: data.rfind(b"\n") + 1]
        at, rows = at + len(whole), rows + whole.count(b"\n")
    else:
        for record, at in whole_records(data, where=str(file), start=start.at):  # noqa: B007
            rows += record.count if isinstance(record, Span) else 0
    if at > start.at:
        return Place(at, rows, _mark(file, at))
    if size > end:
        return _reach_bytes(file, start, 2 * most_bytes, ended=ended)  # one record is longer
    return start


def _events(file: Path, data: bytes, before: int) -> Iterator[Event]:
    for row, line in enumerate(data.split(b"\n"), start=before + 1):
        if line.strip():
            yield decode_event(line, where=f"{file}, line {row}")


def _reach_groups(file: Path, start: Place, most_bytes: int, *, ended: bool) -> Place:
    if not ended and not _has_footer(file):
        return start
    with _parquet(file) as parquet:
        footer = parquet.metadata
        if footer.num_row_groups < start.at:
            raise _anew(file)
        _require_same(file, start, _end_of(footer, start.at))
        at, rows, taken = start.at, start.rows, 0
        for group in range(start.at, footer.num_row_groups):
            about = footer.row_group(group)
            taken += about.total_byte_size
            if taken > most_bytes and at > start.at:
                break
            at, rows = group + 1, rows + about.num_rows
        return Place(at, rows, _mark(file, _end_of(footer, at))) if at > start.at else start


def _has_footer(file: Path) -> bool:
    size = file.stat().st_size
    return size >= 2 * len(_MAGIC) and _bytes(file, size - len(_MAGIC), size) == _MAGIC


def _end_of(footer: pq.FileMetaData, groups: int) -> int:
    """The byte at which so many row groups end."""
    if not groups:
        return 0
    last = footer.row_group(groups - 1)
    columns = (last.column(index) for index in range(last.num_columns))
    return max(
        int(
            (column.dictionary_page_offset or column.data_page_offset)
            + column.total_compressed_size
        )
        for column in columns
    )


def _read_groups(file: Path, stretch: Stretch) -> Iterator[pa.Table]:
    schema = arrow_schema()
    with _parquet(file) as parquet:
        if parquet.num_row_groups < stretch.end.at:
            raise _anew(file)
        _require_same(file, stretch.end, _end_of(parquet.metadata, stretch.end.at))
        check_schema(parquet.schema_arrow, str(file))
        names = [name for name in schema.names if name in parquet.schema_arrow.names]
        row = stretch.start.rows + 1
        for group in range(stretch.start.at, stretch.end.at):
            table = parquet.read_row_group(group, columns=names, use_threads=False)
            if bad := flaws(table):
                raise TraceError(f"{file}, row {row + bad[0][0]}: {bad[0][1]}")
            row += len(table)
            yield _whole(table, schema)


def _whole(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _parquet(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(file, error) from None
