"""Stamped messages in files: Parquet, JSON lines or CSV, read by Spark.

Where a format has no maps or lists, a stamp is JSON in text: `[1, 0, 2]` or `{"a": 1, "c": 2}`.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.sorting.columns import Columns
from ordercast.trace.parquet import unreadable

__all__ = ["read_messages", "separator_of", "source_files", "without_repeats"]

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
    return _KINDS[files[0].suffix], files


def separator_of(file: Path) -> str:
    return "\t" if file.suffix == ".tsv" else ","


def _require_same_schema(files: list[Path]) -> None:
    first: pa.Schema | None = None
    for file in files:
        try:
            schema = pq.read_schema(file)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file, error) from None
        first = schema if first is None else first
        if not schema.equals(first):
            raise TraceError(f"{file}: its columns, or their types, are not those of {files[0]}")


def read_messages(spark: SparkSession, source: Path, columns: Columns) -> DataFrame:
    """The rows, with stamps as lists or maps."""
    kind, files = source_files(source)
    paths = [str(file.absolute()) for file in files]
    if kind == "parquet":
        frame = spark.read.parquet(*paths)
    elif kind == "csv":
        separator = separator_of(files[0])
        options = {"header": "true", "inferSchema": "true", "escape": '"', "sep": separator}
        frame = spark.read.options(mode="FAILFAST", **options).csv(paths)
    else:
        known = spark.read.option("mode", "FAILFAST").json(paths).schema
        frame = spark.read.option("mode", "FAILFAST").schema(_with_map(known, columns)).json(paths)
    return _with_stamps(frame, columns)


def _with_map(schema: T.StructType, columns: Columns) -> T.StructType:
    """Spark takes an object for a record of its own type; a stamp is a map."""
    return T.StructType(
        [
            T.StructField(field.name, T.MapType(T.StringType(), T.LongType()))
            if field.name == columns.stamp and isinstance(field.dataType, T.StructType)
            else field
            for field in schema
        ]
    )


def _with_stamps(frame: DataFrame, columns: Columns) -> DataFrame:
    """Stamps that are text, read as what they are by the first of them."""
    if columns.stamp not in frame.columns or frame.schema[columns.stamp].dataType != T.StringType():
        return frame
    stamp = F.col(columns.stamp)
    rows = frame.where(stamp.isNotNull()).select(stamp).take(1)
    first = rows[0][0] if rows else ""
    kind = {"{": _MAP, "[": _LIST}.get(first.lstrip()[:1])
    if kind is None:
        raise UsageError(
            f"the column {columns.stamp!r} is text, and neither a list nor an object in JSON, such "
            f"as [1, 0, 2]: {first[:40]!r}"
        )
    return frame.withColumn(columns.stamp, F.from_json(stamp, kind, {"mode": "FAILFAST"}))


def without_repeats(frame: DataFrame, columns: Columns) -> DataFrame:
    """One row of those that have the same id and the same stamp: the first, as JSON sorts them."""
    stamp = F.col(columns.stamp)
    is_map = isinstance(frame.schema[columns.stamp].dataType, T.MapType)
    told = F.to_json(F.array_sort(F.map_entries(stamp)) if is_map else stamp)
    whole = F.struct(*frame.columns)
    kept = frame.groupBy(*columns.identity, told.alias("_causal_told")).agg(
        F.min_by(whole, F.to_json(whole)).alias("_causal_row")
    )
    return kept.select("_causal_row.*")
