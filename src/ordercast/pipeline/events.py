"""A trace's events as a DataFrame, with everything that costs are measured by."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.pipeline.rows import load
from ordercast.pipeline.schemas import spark_schema, spark_type
from ordercast.pipeline.source import Source
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.parquet import arrow_schema

__all__ = ["every_column", "read_events"]

_ROWS_EACH = 1 << 20
"""In one task, however many pieces they are in."""


def read_events(spark: SparkSession, source: Source) -> DataFrame:
    """The rows that can be used, read by the tasks themselves, as for judging: whatever types
    others wrote, whatever their files are called, and wherever the tasks run.

    Lines cost far more to parse than to keep, so those are kept; `unpersist` them.
    """
    schema = arrow_schema()
    pieces = (*source.lines, *(group.piece for group in source.groups))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            for index in batch.column("id").to_pylist():
                yield from load([pieces[index]], measured=True).events.cast(schema).to_batches()

    cores = spark.sparkContext.defaultParallelism
    tasks = min(len(pieces), max(source.rows // _ROWS_EACH, 2 * cores))
    ids = spark.range(len(pieces), numPartitions=max(tasks, 1))
    found = ids.mapInArrow(run, spark_schema(schema))
    return found.persist() if source.lines else found


def every_column(events: DataFrame) -> DataFrame:
    """in: some columns of a trace
    out: all of them, in the trace's types; those that are missing are null"""
    return events.select(
        *(
            (F.col(field.name) if field.name in events.columns else F.lit(None))
            .try_cast(spark_type(field.type))
            .alias(field.name)
            for field in arrow_schema()
        )
    )
