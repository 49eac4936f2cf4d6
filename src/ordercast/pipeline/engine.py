"""The judgement as Spark jobs. Everything that a task gives back is a row (part, payload): the name
of a result table, and some rows of it as Arrow bytes; so one pass over the trace fills them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ordercast.pipeline.alone import judge_alone
from ordercast.pipeline.blobs import pack, unpack
from ordercast.pipeline.events import every_column, read_events
from ordercast.pipeline.huge import Unhealthy
from ordercast.pipeline.huge.gathering import check_room
from ordercast.pipeline.judging import warm_up
from ordercast.pipeline.kernels.kernel import WORTH_COMPILING
from ordercast.pipeline.options import Options
from ordercast.pipeline.packing import gathered, pack_frames, pack_source
from ordercast.pipeline.results import PARTS, Results
from ordercast.pipeline.rows import load
from ordercast.pipeline.saying import lost, said, tables_of
from ordercast.pipeline.shipping import in_tasks, is_local
from ordercast.pipeline.source import Item, Source, huge_runs, items
from ordercast.pipeline.workers import keep_what_is_loaded

__all__ = ["Results", "judge_frame", "judge_source"]

ITEM_ROWS_MOST = 1 << 21
"""Rows in one task's memory, as far as runs allow."""
_ITEM_ROWS_LEAST = 1 << 16
HUGE_ROWS = 1 << 22
"""From here on a run is split."""


def judge_source(spark: SparkSession, source: Source, options: Options) -> Results:
    """A trace on disk."""
    source = whole = source.at(in_tasks(spark, source.files))
    frames: list[DataFrame] = []
    ready: list[tuple[str, pa.Table]] = []
    for run in () if options.skip else huge_runs(source, HUGE_ROWS):
        source, alone = source.split(run)
        try:
            judged = judge_alone(spark, run, alone, options)
            ready += tables_of(judged, alone.described, options)
        except Unhealthy as reason:
            check_room(spark, run, alone.rows, reason)
            pieces = tuple(group.piece for group in alone.groups)
            frames.append(_judge_items(spark, [Item(pieces, alone.described)], options))
    ready += lost(source)
    if source.rows or len(source.described) or not (frames or ready):
        frames.append(_judge_rest(spark, source, options))
    parts = reduce(DataFrame.union, frames) if frames else None
    return Results(spark, parts, lambda: read_events(spark, whole), ready)


def _judge_rest(spark: SparkSession, source: Source, options: Options) -> DataFrame:
    """Runs that fit into a task, many at a time."""
    cores = spark.sparkContext.defaultParallelism
    each = min(max(source.rows // (4 * cores), _ITEM_ROWS_LEAST), ITEM_ROWS_MOST)
    work = items(source, each)
    if work is not None:
        return _judge_items(spark, work, options)
    buckets = max(-(-source.rows // each), 1)
    return _judge_packed(pack_source(spark, source, buckets), buckets, options)


def judge_frame(events: DataFrame, runs: DataFrame, options: Options) -> Results:
    """Events and runs as DataFrames: `trace.parquet.arrow_schema`, and `described.DESCRIBED`."""
    buckets = max(
        events.rdd.getNumPartitions(), events.sparkSession.sparkContext.defaultParallelism
    )
    packed = pack_frames(events, runs, buckets)
    parts = _judge_packed(packed, buckets, options)
    return Results(events.sparkSession, parts, lambda: every_column(events))


_ARROW_PARTS = pa.schema({"part": pa.string(), "payload": pa.binary()})


def _judge_items(spark: SparkSession, work: list[Item], options: Options) -> DataFrame:
    if (
        is_local(spark.sparkContext.master or "")
        and sum(item.rows for item in work) >= WORTH_COMPILING
    ):
        warm_up()  # once here, rather than by every worker at the same time

    bounds = [(item.pieces, item.low, item.high) for item in work]
    described = [pack(item.described) for item in work]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            for index in batch.column("id").to_pylist():
                pieces, low, high = bounds[index]
                events, bad = load(pieces)
                yield from _judged(
                    _between(events, low, high), unpack(described[index]), bad, options
                )

    return spark.range(len(work), numPartitions=len(work)).mapInArrow(run, PARTS)


def _between(events: pa.Table, low: str, high: str | None) -> pa.Table:
    """The rows of an item's own runs: row groups at its ends may hold others as well."""
    if not low and high is None:
        return events
    run = events.column("run").unify_dictionaries()
    if not run.num_chunks:
        return events
    names = run.chunk(0).dictionary
    mine = pc.greater_equal(names, low)
    if high is not None:
        mine = pc.and_(mine, pc.less(names, high))
    mine = mine.to_numpy(zero_copy_only=False)
    if mine.all():
        return events
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in run.chunks])
    return events.filter(pa.array(mine[codes]))


def _judge_packed(packed: DataFrame, buckets: int, options: Options) -> DataFrame:
    """in: `packing`"""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for together in gathered(batches):
            yield from _judged(*together, options)

    return packed.repartition(buckets, "bucket").mapInArrow(run, PARTS)


def _judged(
    events: pa.Table, described: pa.Table, bad: pa.Table, options: Options
) -> Iterator[pa.RecordBatch]:
    for name, table in said(events, described, bad, options):
        payload = {"part": [name], "payload": [pack(table)]}
        yield pa.RecordBatch.from_pydict(payload, _ARROW_PARTS)
