"""The files of a directory that a trace is being written to: how far each can be read, and the rows
from there to here.

What is followed: the members' logs (`NAME-0001.spans`), as `ordercast.join(trace=…)` and
`ordercast run` write them; without any, `events.jsonl`, `events/*.jsonl` and `events/*.parquet`.
A place is a byte of a log or of JSON lines, always the end of a whole record; of Parquet it is a
number of row groups, and a file without a footer is not there yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.pipeline.rules import check_schema, flaws
from ordercast.trace.event import Event
from ordercast.trace.jsonl import decode_event
from ordercast.trace.parquet import arrow_schema, to_table, unreadable
from ordercast.trace.spans import Head, Span, log_files, whole_records
from ordercast.trace.unrolled import tables_of

__all__ = ["Place", "Stretch", "followed", "reach", "read_head", "read_stretch"]

_MAGIC = b"PAR1"


class Place(Struct, frozen=True):
    """How far a file was read."""

    at: int = 0
    rows: int = 0
    """Before it: of a log, the position of the next row less that of the first."""


class Stretch(Struct, frozen=True):
    """From one place to another."""

    file: str
    start: Place
    end: Place


def followed(path: Path) -> list[Path]:
    """The files that are there now, in a fixed order."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise TraceError(f"{path}: there is no such file or directory")
    if logs := log_files(path):
        return logs
    lines = [path / "events.jsonl"] if (path / "events.jsonl").is_file() else []
    parts = path / "events"
    return [*lines, *sorted(parts.glob("*.jsonl")), *sorted(parts.glob("*.parquet"))]


def reach(file: Path, start: Place, *, most_bytes: int) -> Place:
    """How far the file can be read now, by about that many bytes at most."""
    try:
        size = file.stat().st_size
    except FileNotFoundError:
        return start  # it was removed once it was read, as logs are
    if file.suffix == ".parquet":
        return _reach_groups(file, start, size, most_bytes)
    if size < start.at:
        raise TraceError(
            f"{file}: {start.at} bytes of it were read, and now it has {size}: it was written "
            "anew; watch it with a new checkpoint"
        )
    if size == start.at:
        return start
    data = _bytes(file, start.at, min(size, start.at + most_bytes))
    if file.suffix == ".jsonl":
        whole = data[: data.rfind(b"\n") + 1]
        found = Place(start.at + len(whole), start.rows + whole.count(b"\n"))
    else:
        at, rows = start.at, start.rows
        for record, at in whole_records(data, where=str(file), start=start.at):  # noqa: B007
            rows += record.count if isinstance(record, Span) else 0
        found = Place(at, rows)
    if found == start and size > start.at + most_bytes:
        return reach(file, start, most_bytes=2 * most_bytes)  # one record is longer than that
    return found


def read_stretch(stretch: Stretch) -> Iterator[pa.Table]:
    """Its rows, as `arrow_schema` has them."""
    file = Path(stretch.file)
    try:
        if file.suffix == ".parquet":
            yield from _read_groups(file, stretch)
            return
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


def _events(file: Path, data: bytes, before: int) -> Iterator[Event]:
    for row, line in enumerate(data.splitlines(), start=before + 1):
        if line.strip():
            yield decode_event(line, where=f"{file}, line {row}")


def _reach_groups(file: Path, start: Place, size: int, most_bytes: int) -> Place:
    if size < 2 * len(_MAGIC) or _bytes(file, size - len(_MAGIC), size) != _MAGIC:
        return start
    with _parquet(file) as parquet:
        found, taken = start, 0
        for group in range(start.at, parquet.num_row_groups):
            about = parquet.metadata.row_group(group)
            taken += about.total_byte_size
            if taken > most_bytes and found != start:
                break
            found = Place(group + 1, found.rows + about.num_rows)
    return found


def _read_groups(file: Path, stretch: Stretch) -> Iterator[pa.Table]:
    schema = arrow_schema()
    with _parquet(file) as parquet:
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
    except (pa.ArrowException, OSError) as error:
        raise unreadable(file, error) from None
