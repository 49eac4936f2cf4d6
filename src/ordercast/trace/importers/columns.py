"""The rows of a table, whatever it is written in."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import SetupError, TraceError
from ordercast.trace.importers.base import Job, Where, numbered_lines

__all__ = ["rows_of"]

Row = tuple[int, list[str], dict[str, Any]]
"""The line or row number, the columns there are, and the values."""


def rows_of(job: Job, file: Path) -> Iterator[Row]:
    if file.suffix == ".parquet":
        yield from _parquet(job, file)
    elif file.suffix in (".jsonl", ".ndjson", ".json"):
        yield from _jsonl(job, file)
    else:
        yield from _csv(job, file)


def _csv(job: Job, file: Path) -> Iterator[Row]:
    lines = (line + "\n" for _, line in numbered_lines(job, file, blank=True))
    reader = csv.reader(lines, delimiter="\t" if file.suffix == ".tsv" else ",")
    columns: list[str] = []
    try:
        for values in reader:
            if not columns:
                columns = [name.strip() for name in values]
            elif len(values) == len(columns):
                yield reader.line_num, columns, dict(zip(columns, values, strict=True))
            elif values:
                where = Where(str(file), reader.line_num)
                job.report.unusable(where, f"{len(values)} values for {len(columns)} columns")
    except csv.Error as error:
        raise TraceError(f"{file}, line {reader.line_num}: not CSV: {error}") from None


def _jsonl(job: Job, file: Path) -> Iterator[Row]:
    columns: dict[str, None] = {}
    for where, line in numbered_lines(job, file):
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            job.report.unusable(where, f"not an object in JSON: {error}")
            continue
        columns |= dict.fromkeys(row)
        yield where.line, list(columns), row


def _parquet(job: Job, file: Path) -> Iterator[Row]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise SetupError(
            "Parquet tables need pyarrow: pip install 'ordercast[spark]', or export them as CSV"
        ) from None
    try:
        with pq.ParquetFile(file) as source:
            number = 0
            for batch in source.iter_batches(1 << 14):
                for row in batch.to_pylist():
                    number += 1
                    yield number, source.schema_arrow.names, row
    except (pa.ArrowInvalid, OSError) as error:
        raise TraceError(f"{file}: not a readable Parquet file: {error}") from None
    job.advance(file.stat().st_size)
