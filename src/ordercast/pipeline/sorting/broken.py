"""Where the rows are that Spark cannot read: it says that there are some, and not where."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.pipeline.sorting.columns import Columns
from ordercast.pipeline.sorting.source import csv_rows, source_files
from ordercast.trace.jsonl import MARK, UNREADABLE

__all__ = ["plainly_read"]

_UNREADABLE = ("MALFORMED", "FAILED_READ_FILE", "INVALID_JSON_RECORD_TYPE")
"""Spark's words for rows that it cannot read."""
_DOUBLED = "COLUMN_ALREADY_EXISTS"
"""Its words for an object that has a name twice."""
_LONG = 1 << 63
_LIST = ("a list of whole numbers, such as [1, 0, 2]", list[int | None])
_MAP = ('an object of whole numbers, such as {"a": 1, "c": 2}', dict[str, int | None])
"""What a stamp may be, in words and as a type; that an entry is null is told later, and better."""

Place = tuple[str, dict[str, Any]]
"""Which row, and what it says, at least as its stamp."""


@contextmanager
def plainly_read(source: Path, columns: Columns) -> Iterator[None]:
    """Within it, Spark's words for what it cannot read become one sentence."""
    try:
        yield
    except Exception as error:
        words = str(error)
        if _DOUBLED in words and (sentence := _doubled_name(source)):
            raise TraceError(sentence) from None
        if not any(one in words for one in _UNREADABLE):
            raise
        raise TraceError(_broken_row(source, columns) or _broken_file(source, words)) from None


def _broken_row(source: Path, columns: Columns) -> str | None:
    """The first row that cannot be taken apart, or has a stamp that is none, or in CSV a number
    that is none, if that is what is wrong. What the first stamp is, all are expected to be."""
    kind, files = source_files(source)
    expected = None
    try:
        for file in files:
            for place, row in _READERS[kind](file, columns):
                stamp = row.get(columns.stamp)
                value = _decoded(stamp)
                if expected is None and value is not None:
                    expected = _MAP if isinstance(value, dict) else _LIST
                if kind == "csv" and (name := _no_number(row, columns, expected == _LIST)):
                    why = ", as places in a list are" * (name == columns.origin)
                    return (
                        f"{place}, column {name!r}: {row[name][:40]!r} is not a whole number{why}"
                    )
                if expected is not None and value is not None and not _fits(value, expected[1]):
                    shown = stamp if isinstance(stamp, str) else msgspec.json.encode(stamp).decode()
                    where = f"{place}, column {columns.stamp!r}"
                    return f"{where}: {shown[:40]!r} is not {expected[0]}"
    except TraceError as error:
        return str(error)
    except (csv.Error, pa.ArrowException, OSError):
        return None
    return None


def _no_number(row: dict[str, str], columns: Columns, lists: bool) -> str | None:
    """The column whose text should be a whole number, and is none. Nothing is null."""
    for name in (columns.number, columns.origin) if lists else (columns.number,):
        text = row.get(name) or "0"
        if not re.fullmatch(r"[+-]?\d{1,40}", text) or not -_LONG <= int(text) < _LONG:
            return name
    return None


def _doubled_name(source: Path) -> str | None:
    """The first object in JSON that has a name twice, if there is one."""
    kind, files = source_files(source)
    for file in files if kind == "json" else []:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    json.loads(line, object_pairs_hook=_once) if line.strip() else None
                except TraceError as error:
                    return f"{file}, line {number}: {error}"
                except (ValueError, RecursionError):
                    return None
    return None


def _once(pairs: list[tuple[str, Any]]) -> None:
    for name, times in Counter(name for name, _ in pairs).items():
        if times > 1:
            raise TraceError(f"an object in it has {name!r} twice")


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


def _lines(file: Path, _: Columns) -> Iterator[Place]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{file}, line {number}"
            text = line.removeprefix(MARK) if number == 1 else line
            try:
                row = msgspec.json.decode(text if text.strip() else b"{}", type=dict[str, Any])
            except UNREADABLE as error:
                raise TraceError(f"{place}: cannot be read as an object in JSON: {error}") from None
            yield place, row


def _rows(file: Path, _: Columns) -> Iterator[Place]:
    header: list[str] | None = None
    for line, row in csv_rows(file):
        place = f"{file}, line {line}"
        if header is None:
            header = row
        elif len(row) != len(header):
            values = f"{len(row)} value{'s' * (len(row) != 1)}"
            raise TraceError(f"{place}: it has {values}, and the first line {len(header)}")
        else:
            yield place, dict(zip(header, row, strict=True))


def _table(file: Path, columns: Columns) -> Iterator[Place]:
    """Of lists and maps, Spark knows from the schema what they are."""
    number, name = 0, columns.stamp
    with pq.ParquetFile(file) as table:
        for batch in table.iter_batches(columns=[name]):
            for stamp in batch.column(name).to_pylist():
                number += 1
                yield f"{file}, row {number}", {name: stamp if isinstance(stamp, str) else None}


_READERS = {"json": _lines, "csv": _rows, "parquet": _table}


def _broken_file(source: Path, words: str) -> str:
    place = re.search(r"file:/+([^\s,]+)", words)
    where = Path(f"/{place[1]}".rstrip(".")) if place else source
    found = re.search(r"record parsing: \[?(?!null\b)(.{1,60})", words)
    what = f": {found[1].rstrip('].')}" if found else ""
    return f"{where}: there is something in it that cannot be read{what}"
