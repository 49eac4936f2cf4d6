"""Stamped messages in files: Parquet, JSON lines or CSV, read by Spark.

Where a format has no maps or lists, a stamp is JSON in text: `[1, 0, 2]` or `{"a": 1, "c": 2}`. All
of CSV is text, and stays as it is: only numbers that we count with are read as such.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.paths import plain_paths
from ordercast.pipeline.sorting.columns import Columns
from ordercast.pipeline.sorting.names import col, cols
from ordercast.trace.parquet import unreadable

__all__ = ["csv_rows", "read_messages", "source_files", "without_repeats"]

_KINDS = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "json"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    ".parquet": "parquet",
}
_MAP, _LIST = "map<string, bigint>", "array<bigint>"


def source_files(source: Path) -> tuple[str, list[Path]]:
    """What kind of files they are, and the files: needs no Spark, so mistakes are told at once."""
    if source.is_dir():
        files = sorted(one for one in source.iterdir() if one.is_file() and one.name[0] not in "._")
    elif source.is_file():
        if source.name[0] in "._":
            raise TraceError(f"{source}: Spark passes over files whose names begin with . or _")
        files = [source]
    else:
        raise TraceError(f"{source}: there is no such file or directory")
    if not files:
        raise TraceError(f"{source}: there is no file in it")
    for file in files:
        if file.suffix not in _KINDS:
            raise TraceError(f"{file}: messages are in files that end in {', '.join(_KINDS)}")
        if (
            _KINDS[file.suffix] != _KINDS[files[0].suffix]
            or file.suffix == ".tsv" != files[0].suffix
        ):
            raise TraceError(f"{file} is another kind of file than {files[0]}")
    if files[0].suffix == ".parquet":
        _require_same_schema(files)
    elif _KINDS[files[0].suffix] == "csv":
        _require_same_header(files)
    return _KINDS[files[0].suffix], files


def _separator_of(file: Path) -> str:
    return "\t" if file.suffix == ".tsv" else ","


def _require_same_schema(files: list[Path]) -> None:
    first: pa.Schema | None = None
    for file in files:
        try:
            schema = pq.read_schema(file)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise unreadable(file, error) from None
        first = schema if first is None else first
        if not schema.equals(first):
            raise TraceError(f"{file}: its columns, or their types, are not those of {files[0]}")


def _require_same_header(files: list[Path]) -> None:
    """Spark takes the names from one file, and the values of all by their place."""
    first: list[str] | None = None
    for file in files:
        try:
            header = next((row for _, row in csv_rows(file)), None)
        except csv.Error as error:
            raise TraceError(f"{file}: its first line cannot be read: {error}") from None
        first = header if first is None else first
        if header is not None and header != first:
            raise TraceError(f"{file}: its columns, or their order, are not those of {files[0]}")


def csv_rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, with the number of the line that each ends in."""
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        table = csv.reader(text, delimiter=_separator_of(file))
        yield from ((table.line_num, row) for row in table if row)


def read_messages(spark: SparkSession, source: Path, columns: Columns) -> DataFrame:
    """The rows, with stamps as lists or maps."""
    kind, files = source_files(source)
    paths = plain_paths(files)
    if kind == "csv":
        return _read_csv(spark, paths, columns, _separator_of(files[0]))
    frame = spark.read.parquet(*paths) if kind == "parquet" else _read_json(spark, paths, columns)
    return _with_stamps(frame, columns, _kind_of_stamps(frame, columns))


def _read_csv(spark: SparkSession, paths: list[str], columns: Columns, separator: str) -> DataFrame:
    options = {"header": "true", "escape": '"', "sep": separator, "mode": "FAILFAST"}
    # Or Spark would not see that a row has too few values, if it needs none of those.
    options["columnPruning"] = "false"
    options["multiLine"] = str(_has_open_quotes(spark, paths)).lower()
    text = spark.read.options(**options).csv(paths)
    kind = _kind_of_stamps(text, columns)
    numbers = {columns.number, columns.origin} if kind == _LIST else {columns.number}
    schema = T.StructType(
        [
            T.StructField(field.name, T.LongType() if field.name in numbers else field.dataType)
            for field in text.schema
        ]
    )
    frame = spark.read.options(**options).schema(schema).csv(paths) if schema.names else text
    return _with_stamps(frame, columns, kind)


def _has_open_quotes(spark: SparkSession, paths: list[str]) -> bool:
    """May a value go on in the next line? Then Spark has to read each file from its beginning,
    which is why it is not told so of every file."""
    line = F.col("value")
    quotes = F.octet_length(line) - F.octet_length(F.replace(line, F.lit('"'), F.lit("")))
    return spark.read.text(paths).where(quotes % 2 == 1).limit(1).count() > 0


def _read_json(spark: SparkSession, paths: list[str], columns: Columns) -> DataFrame:
    reader = spark.read.option("mode", "FAILFAST")
    known = reader.json(paths).schema
    stamp = T.StructField(columns.stamp, T.MapType(T.StringType(), T.LongType()))
    # Spark takes an object for a record of its own type; a stamp is a map.
    mapped = T.StructType(
        [
            stamp if one.name == stamp.name and isinstance(one.dataType, T.StructType) else one
            for one in known
        ]
    )
    if known.names and stamp.name not in known.names:
        # It leaves out what is nowhere more than `{}`, which is a stamp.
        empty = reader.schema(T.StructType([*mapped, stamp])).json(paths)
        if empty.where(col(stamp.name).isNotNull()).take(1):
            return empty
    return reader.schema(mapped).json(paths)


def _kind_of_stamps(frame: DataFrame, columns: Columns) -> str | None:
    """What stamps that are text say, by the first of them; null if they are no text."""
    if columns.stamp not in frame.columns or frame.schema[columns.stamp].dataType != T.StringType():
        return None
    stamp = col(columns.stamp)
    rows = frame.where(stamp.isNotNull()).select(stamp).take(1)
    first = rows[0][0] if rows else ""
    kind = {"{": _MAP, "[": _LIST}.get(first.lstrip()[:1])
    if kind is None:
        raise UsageError(
            f"the column {columns.stamp!r} is text, and neither a list nor an object in JSON, such "
            f"as [1, 0, 2]: {first[:40]!r}"
        )
    return kind


def _with_stamps(frame: DataFrame, columns: Columns, kind: str | None) -> DataFrame:
    if kind is None:
        return frame
    stamp = F.from_json(col(columns.stamp), kind, {"mode": "FAILFAST"})
    return frame.withColumn(columns.stamp, stamp)


def without_repeats(frame: DataFrame, columns: Columns) -> DataFrame:
    """One row of those that have the same id and the same stamp: the first, as JSON sorts them."""
    stamp = col(columns.stamp)
    is_map = isinstance(frame.schema[columns.stamp].dataType, T.MapType)
    told = F.to_json(F.array_sort(F.map_entries(stamp)) if is_map else stamp)
    whole = F.struct(*cols(frame.columns))
    kept = frame.groupBy(*cols(columns.identity), told.alias("_causal_told")).agg(
        F.min_by(whole, F.to_json(whole)).alias("_causal_row")
    )
    return kept.select("_causal_row.*")
