"""Other systems' files, parsed by tasks, each of which takes a share of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.reading.shares import Share
from ordercast.pipeline.reading.task import Task, Told, rows_of
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.shipping import local_path
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.importers import Options

__all__ = ["parse"]

_ABOUT = pa.schema({"part": pa.string(), "share": pa.int32(), "payload": pa.binary()})


def parse(
    spark: SparkSession,
    format: str,
    shares: Sequence[Share],
    tokens: dict[Path, str],
    options: Options,
) -> tuple[DataFrame, list[Told]]:
    """out: part (`rows` or `ids`), share (its number), payload (of ids), and the columns of
    `rows_of(format)`; to be unpersisted. And what the tasks say, share by share. Raises the first
    error that any of them met."""
    schema = pa.unify_schemas([_ABOUT, rows_of(format)])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            for number in batch.column("id").to_pylist():
                names = {str(local_path(tokens[file])): str(file) for file in shares[number].files}
                task = Task(format, number, shares, names, options)
                for part, given in task.parts():
                    table = given if isinstance(given, pa.Table) else _payload(given)
                    yield from _filled(table, part, number, schema).to_batches()

    tasks = spark.range(len(shares), numPartitions=len(shares))
    parts = tasks.mapInArrow(run, spark_schema(schema)).persist()
    rows = parts.where(F.col("part") == "told").select("payload").collect()
    told = [msgspec.json.decode(row["payload"], type=Told) for row in rows]
    told.sort(key=lambda one: one.share)
    for one in told:
        if one.error is not None:
            parts.unpersist()
            raise (UsageError if one.misuse else TraceError)(one.error)
    return parts, told


def _payload(content: bytes) -> pa.Table:
    return pa.table({"payload": pa.array([content], pa.binary())})


def _filled(table: pa.Table, part: str, share: int, schema: pa.Schema) -> pa.Table:
    """With the columns that all parts have; null where this one has nothing to say."""
    known = {"part": pa.repeat(part, len(table)), "share": pa.repeat(share, len(table))}
    columns = known | {name: table[name] for name in table.column_names}
    return pa.table(
        [
            columns[one.name].cast(one.type)
            if one.name in columns
            else pa.nulls(len(table), one.type)
            for one in schema
        ],
        schema=schema,
    )
