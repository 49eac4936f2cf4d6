"""A trace's rows as they are on disk, sound or not.

A row's `flaw` is what is wrong with it, or null; the other columns of a broken row mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import chain, groupby, islice
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.errors import TraceError
from ordercast.pipeline.rules import COLUMNS, Columns, flaw, typed
from ordercast.trace.event import Event
from ordercast.trace.jsonl import decode_event
from ordercast.trace.parquet import arrow_schema

__all__ = ["many_lines", "place_flaws", "read_rows"]

_LINES_AT_ONCE = 1 << 14
# What is parsed sooner than a Python worker starts.
_READ_HERE_BYTES = 4 << 20
_PLACE = {"file": "string", "row": "bigint", "flaw": "string"}
_NOTHING = Event("", 0, 0, "leave")
"""Fills the columns of a row that could not be read."""


def read_rows(
    spark: SparkSession, lines: tuple[Path, ...], parquet: Mapping[Path, Columns]
) -> DataFrame:
    """out: the trace's columns (`rules.COLUMNS`), flaw"""
    tables = [_json_rows(spark, lines).drop("file", "row")] if lines else []
    for columns, files in _alike(parquet):
        tables.append(_open(spark, files, columns).select(*typed(columns), flaw(columns)))
    return reduce(DataFrame.unionByName, tables)


def many_lines(files: tuple[Path, ...]) -> bool:
    """Are there so many JSON lines that they should be parsed in parallel, and only once?"""
    return sum(file.stat().st_size for file in files) >= _READ_HERE_BYTES


def place_flaws(
    spark: SparkSession, lines: tuple[Path, ...], parquet: Mapping[Path, Columns]
) -> DataFrame:
    """Only the rows that are broken, and where they are. A second reading, because keeping the
    place of every row of a sound trace costs more than its checking.

    out: file, row (from 1), flaw
    """
    tables = [_json_rows(spark, lines).select("file", "row", "flaw")] if lines else []
    for columns, files in _alike(parquet):
        file = F.col("_metadata.file_path").alias("file")
        row = (F.col("_metadata.row_index") + 1).alias("row")
        tables.append(_open(spark, files, columns).select(file, row, flaw(columns)))
    return reduce(DataFrame.unionByName, tables).where(F.col("flaw").isNotNull())


def _alike(parquet: Mapping[Path, Columns]) -> list[tuple[Columns, list[Path]]]:
    """Files differ in which optional columns they have; those that agree are read together."""
    by_columns = groupby(sorted(parquet, key=parquet.__getitem__), parquet.__getitem__)
    return [(columns, list(files)) for columns, files in by_columns]


def _open(spark: SparkSession, files: list[Path], columns: Columns) -> DataFrame:
    # Spark would take some characters of a file's name for a pattern.
    names = [re.sub(r"([\[\]{}*?\\])", r"\\\1", f"file://{file}") for file in files]
    schema = ", ".join(f"{name} {kind}" for name, kind in columns)
    return spark.read.schema(schema).parquet(*names)


def _json_rows(spark: SparkSession, files: tuple[Path, ...]) -> DataFrame:
    """One task per file, because only a reader from the top knows the number of a line."""
    names = [str(file) for file in files]
    if not many_lines(files):
        return spark.createDataFrame(pa.Table.from_batches(chain(*map(_parsed, names)), _schema()))

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                yield from _parsed(names[index])

    columns = ", ".join(f"{name} {kind}" for name, kind in (COLUMNS | _PLACE).items())
    return spark.range(len(names), numPartitions=len(names)).mapInArrow(parse, columns)


def _parsed(file: str) -> Iterator[pa.RecordBatch]:
    """Up to the first line that is broken: nobody needs to hear of the second."""
    with open(file, "rb") as text:
        numbered = enumerate(text, start=1)
        while chunk := list(islice(numbered, _LINES_AT_ONCE)):
            events: list[Event] = []
            rows: list[int] = []
            for row, line in chunk:
                if not line.strip():
                    continue
                try:
                    events.append(decode_event(line, where=f"{file}, line {row}"))
                except TraceError as error:
                    yield _batch(file, events, rows)
                    yield _batch(file, [_NOTHING], [row], flaw=str(error))
                    return
                rows.append(row)
            yield _batch(file, events, rows)


def _batch(
    file: str, events: list[Event], rows: list[int], *, flaw: str | None = None
) -> pa.RecordBatch:
    arrays = [
        pa.array([getattr(event, field.name) for event in events], field.type)
        for field in arrow_schema()
    ]
    size = len(events)
    place = [
        pa.array([file] * size),
        pa.array(rows, pa.int64()),
        pa.array([flaw] * size, pa.string()),
    ]
    return pa.RecordBatch.from_arrays([*arrays, *place], schema=_schema())


def _schema() -> pa.Schema:
    columns = [pa.field(field.name, field.type) for field in arrow_schema()]
    place = [("file", pa.string()), ("row", pa.int64()), ("flaw", pa.string())]
    return pa.schema([*columns, *place])
