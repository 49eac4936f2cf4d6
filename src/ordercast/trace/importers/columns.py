"""The rows of a table, whatever it is written in."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import SetupError, TraceError
from ordercast.trace.importers.base import Job, Report, Where
from ordercast.trace.importers.lines import lines_between, numbered_lines
from ordercast.trace.jsonl import MARK
from ordercast.trace.parquet import unreadable

__all__ = ["first_columns", "rows_of", "survey"]

HEAD_ROWS = 1000
"""A column that `--map` names is in one of so many objects: not each has all of them."""
HEAD_BYTES = 1 << 16
SEPARATORS = ",;\t|"


def _exact(text: str) -> Decimal:
    """A clock's digits, all of them; a float would cut them."""
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent that is too large
        return Decimal("Infinity")


_decode = msgspec.json.Decoder(dict[str, Any], float_hook=_exact).decode
Row = tuple[int, list[str], dict[str, Any]]
"""The line or row number, the columns there are, and the values."""


def rows_of(job: Job, file: Path) -> Iterator[Row]:
    if file.suffix == ".parquet":
        yield from _parquet(job, file)
    elif _is_json(file):
        yield from _jsonl(job, file)
    else:
        yield from _csv(job, file)


def first_columns(job: Job, file: Path) -> list[str]:
    """Those of the file's first row, which say what the others mean, wherever a portion begins."""
    whole = replace(job, portion=None, report=Report(skip_bad_rows=True), advance=lambda _: None)
    return next((columns for _, columns, _ in rows_of(whole, file)), [])


def survey(file: Path, start: int, stop: int) -> tuple[int, bool]:
    """How many lines begin in this range of bytes, and whether each of them is a row by itself. If
    all are, the file can be cut between any two."""
    count = quoted = 0

    def with_quotes() -> Iterator[str]:
        nonlocal count, quoted
        for line in lines_between(file, start, stop):
            count += 1
            if b'"' in line:
                quoted += 1
                yield line.decode(errors="replace").rstrip("\r\n") + "\n"
        yield "behind the last\n"

    if _is_json(file):
        return sum(1 for _ in lines_between(file, start, stop)), True
    try:
        # A value that goes on behind its line would swallow the next one.
        rows = sum(1 for _ in _reader(with_quotes(), file))
    except csv.Error:
        return count, False
    return count, rows == quoted + 1


def _is_json(file: Path) -> bool:
    """By its name, or because it begins like an object: services write JSON to `app.log`."""
    return file.suffix in (".jsonl", ".ndjson", ".json") or _first_line(file).startswith("{")


def _first_line(file: Path) -> str:
    with file.open("rb") as source:
        start = source.read(HEAD_BYTES).removeprefix(MARK).decode(errors="replace")
    return (start.lstrip().splitlines() or [""])[0]


def _reader(lines: Iterable[str], file: Path) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=_separator(file))


def _separator(file: Path) -> str:
    """What stands between the names of the columns. A comma, unless there is none."""
    if file.suffix == ".tsv":
        return "\t"
    header = _first_line(file)
    return next((each for each in SEPARATORS if each in header), ",")


def _csv(job: Job, file: Path) -> Iterator[Row]:
    at = 0 if job.portion is None else job.portion.before

    def lines() -> Iterator[str]:
        nonlocal at
        for where, line in numbered_lines(job, file, blank=True):
            at = where.line
            yield line + "\n"

    columns = first_columns(job, file) if at else []
    try:
        for values in _reader(lines(), file):
            if not columns:
                columns = [name.strip() for name in values]
            elif len(values) == len(columns):
                yield at, columns, dict(zip(columns, values, strict=True))
            elif values:
                where = Where(str(file), at)
                job.report.unusable(where, f"{len(values)} values for {len(columns)} columns")
    except csv.Error as error:
        raise TraceError(f"{file}, line {at}: not CSV: {error}") from None


def _jsonl(job: Job, file: Path) -> Iterator[Row]:
    """The first object says which columns there are; it may lack some that `--map` names."""
    rows = _objects(job, file)
    head = list(islice(rows, HEAD_ROWS))
    columns = list(head[0][1]) if head else []
    later = {name for _, row in head for name in row}.difference(columns)
    columns += [name for name in _named(job) if name in later]
    for number, row in chain(head, rows):
        yield number, columns, row


def _objects(job: Job, file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    paths = _paths(job)
    for where, line in numbered_lines(job, file):
        try:
            row = _decode(line)
        except msgspec.DecodeError as error:
            job.report.unusable(where, f"not an object in JSON: {error}")
            continue
        yield where.line, _reached(row, paths)


def _paths(job: Job) -> dict[str, list[str]]:
    """The columns with dots that `--map` names: `event.id` may be the `id` in an `event`."""
    return {name: name.split(".") for name in _named(job) if "." in name}


def _named(job: Job) -> dict[str, None]:
    """The columns that `--map` names, each once."""
    names = chain.from_iterable(text.split("+") for text in job.options.map.values())
    return dict.fromkeys(names)


def _reached(row: dict[str, Any], paths: dict[str, list[str]]) -> dict[str, Any]:
    """The row, and what is at the end of each path; a column that is called so goes first."""
    for name, path in paths.items():
        value: Any = row
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            row.setdefault(name, value)
    return row


def _parquet(job: Job, file: Path) -> Iterator[Row]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise SetupError(
            "Parquet tables need pyarrow: pip install 'ordercast[judge]', or export them as CSV"
        ) from None
    try:
        with pq.ParquetFile(file) as source:
            start, stop, number = job.portion or (0, source.num_row_groups, 0)
            names, paths = source.schema_arrow.names, _paths(job)
            leaves = {
                column.path for column in map(source.schema.column, range(len(source.schema)))
            }
            names += [name for name in paths if name in leaves and name not in names]
            for batch in source.iter_batches(1 << 14, row_groups=range(start, stop)):
                for row in batch.to_pylist():
                    number += 1
                    yield number, names, _reached(row, paths)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(file, error) from None
    job.advance(file.stat().st_size)
