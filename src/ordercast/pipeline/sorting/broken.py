"""Where the rows are that Spark cannot read: it says that there are some, and not where."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.pipeline.sorting.columns import Columns
from ordercast.pipeline.sorting.source import separator_of, source_files
from ordercast.trace.jsonl import MARK, UNREADABLE

__all__ = ["plainly_read"]

_UNREADABLE = ("MALFORMED", "FAILED_READ_FILE", "INVALID_JSON_RECORD_TYPE")
"""Spark's words for rows that it cannot read."""
_LIST = ("a list of whole numbers, such as [1, 0, 2]", list[int | None])
_MAP = ('an object of whole numbers, such as {"a": 1, "c": 2}', dict[str, int | None])
"""What a stamp may be, in words and as a type; that an entry is null is told later, and better."""

Place = tuple[str, Any]
"""Which row, and its stamp."""


@contextmanager
def plainly_read(source: Path, columns: Columns) -> Iterator[None]:
    """Within it, Spark's words for what it cannot read become one sentence."""
    try:
        yield
    except Exception as error:
        words = str(error)
        if not any(one in words for one in _UNREADABLE):
            raise
        raise TraceError(_broken_row(source, columns) or _broken_file(source, words)) from None


def _broken_row(source: Path, columns: Columns) -> str | None:
    """The first row that cannot be taken apart, or whose stamp is none, if that is what is wrong.
    What the first stamp is, all are expected to be."""
    kind, files = source_files(source)
    expected = None
    try:
        for file in files:
            for place, stamp in _READERS[kind](file, columns.stamp):
                if (value := _decoded(stamp)) is None:
                    continue
                if expected is None:
                    expected = _MAP if isinstance(value, dict) else _LIST
                if not _fits(value, expected[1]):
                    shown = stamp if isinstance(stamp, str) else msgspec.json.encode(stamp).decode()
                    where = f"{place}, column {columns.stamp!r}"
                    return f"{where}: {shown[:40]!r} is not {expected[0]}"
    except TraceError as error:
        return str(error)
    except (csv.Error, pa.ArrowException, OSError):
        return None
    return None


def _decoded(stamp: Any) -> Any:
    """What is text, as what it says in JSON, if it does; nothing is null, as in CSV."""
    if not isinstance(stamp, str):
        return stamp
    try:
        return msgspec.json.decode(stamp) if stamp else None
    except UNREADABLE:
        return stamp


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _lines(file: Path, name: str) -> Iterator[Place]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{file}, line {number}"
            text = line.removeprefix(MARK) if number == 1 else line
            try:
                row = msgspec.json.decode(text if text.strip() else b"{}", type=dict[str, Any])
            except UNREADABLE as error:
                raise TraceError(f"{place}: cannot be read as an object in JSON: {error}") from None
            yield place, row.get(name)


def _rows(file: Path, name: str) -> Iterator[Place]:
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        table = csv.reader(text, delimiter=separator_of(file))
        header = next(table, [])
        for row in filter(None, table):
            place = f"{file}, line {table.line_num}"
            if len(row) != len(header):
                values = f"{len(row)} value{'s' * (len(row) != 1)}"
                raise TraceError(f"{place}: it has {values}, and the first line {len(header)}")
            yield place, dict(zip(header, row, strict=True)).get(name)


def _table(file: Path, name: str) -> Iterator[Place]:
    """Of lists and maps, Spark knows from the schema what they are."""
    number = 0
    with pq.ParquetFile(file) as table:
        for batch in table.iter_batches(columns=[name]):
            for stamp in batch.column(0).to_pylist():
                number += 1
                yield f"{file}, row {number}", stamp if isinstance(stamp, str) else None


_READERS = {"json": _lines, "csv": _rows, "parquet": _table}


def _broken_file(source: Path, words: str) -> str:
    place = re.search(r"file:/+([^\s,]+)", words)
    where = Path(f"/{place[1]}".rstrip(".")) if place else source
    found = re.search(r"record parsing: \[?(?!null\b)(.{1,60})", words)
    what = f": {found[1].rstrip('].')}" if found else ""
    return f"{where}: there is something in it that cannot be read{what}"
