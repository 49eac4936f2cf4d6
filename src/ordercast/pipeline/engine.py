"""The judgement as Spark jobs. Everything that a task gives back is a row (part, payload): the name
of a result table, and some rows of it as Arrow bytes; so one pass over the trace fills them all.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ordercast.pipeline.arrange import arrange
from ordercast.pipeline.blobs import pack, unpack
from ordercast.pipeline.conclude import conclude
from ordercast.pipeline.described import with_bare, with_holes
from ordercast.pipeline.events import every_column, read_events
from ordercast.pipeline.huge import Unhealthy, split
from ordercast.pipeline.huge.gathering import check_room
from ordercast.pipeline.judging import Judged, judge_rows, warm_up
from ordercast.pipeline.kernels.kernel import WORTH_COMPILING
from ordercast.pipeline.packing import gathered, pack_frames, pack_source
from ordercast.pipeline.results import Results, concluded, once
from ordercast.pipeline.rows import FLAWS, load
from ordercast.pipeline.shipping import in_tasks, is_local
from ordercast.pipeline.source import Item, Source, huge_runs, inspect, items
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["Options", "Results", "judge_frame", "judge_source"]

ITEM_ROWS_MOST = 1 << 21
"""Rows in one task's memory, as far as runs allow."""
_ITEM_ROWS_LEAST = 1 << 16
_BLOB_ROWS = 1 << 16
HUGE_ROWS = 1 << 22
"""From here on a run is split."""
_TASKS_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class Options:
    properties: Collection[str] = PROPERTIES
    quiesced: bool = False
    """Runs without a manifest had come to rest."""
    skip: bool = False
    """Rows that cannot be used are left out."""
    torn: bool = False
    """Any run may have holes, whatever its manifest says."""
    demanded: Collection[str] | None = None
    """What must hold, whatever was promised."""
    listed: bool = True
    """Violations are wanted one by one. Of very many runs they are most of what there is to say."""


def judge_source(spark: SparkSession, source: Source, options: Options) -> Results:
    """A trace on disk."""
    source = whole = source.at(in_tasks(spark, source.files))
    frames: list[DataFrame] = []
    ready: list[tuple[str, pa.Table]] = []
    for run in () if options.skip else huge_runs(source, HUGE_ROWS):
        source, alone = source.split(run)
        try:
            judged = _judge_alone(spark, run, alone, options)
            ready += _tables(judged, alone.described, options)
        except Unhealthy as reason:
            check_room(spark, run, alone.rows, reason)
            pieces = tuple(group.piece for group in alone.groups)
            frames.append(_judge_items(spark, [Item(pieces, alone.described)], options))
    ready += [("flaws", pa.Table.from_pylist([lost], FLAWS)) for lost in _lost(source)]
    if source.rows or len(source.described) or not (frames or ready):
        frames.append(_judge_rest(spark, source, options))
    if ready:
        rows = [(name, bytearray(pack(table))) for name, table in ready]
        frames.append(spark.createDataFrame(rows, _PARTS))
    return Results(reduce(DataFrame.union, frames), lambda: read_events(spark, whole))


def _lost(source: Source) -> list[dict[str, str]]:
    return [{"file": file, "flaw": words} for file, words in source.unreadable]


def _judge_rest(spark: SparkSession, source: Source, options: Options) -> DataFrame:
    """Runs that fit into a task, many at a time."""
    cores = spark.sparkContext.defaultParallelism
    each = min(max(source.rows // (4 * cores), _ITEM_ROWS_LEAST), ITEM_ROWS_MOST)
    work = items(source, each)
    if work is not None:
        return _judge_items(spark, work, options)
    buckets = max(-(-source.rows // each), 1)
    return _judge_packed(pack_source(spark, source, buckets), buckets, options)


def _judge_alone(spark: SparkSession, run: str, source: Source, options: Options) -> Judged:
    """A huge run; one whose rows lie anyhow is put in order first, where there is a place for it
    that all tasks can reach."""
    local = is_local(spark.sparkContext.master or "")
    if source.in_order or not local:
        try:
            return _judge_huge(spark, run, source, options)
        except Unhealthy as reason:
            if not reason.unsorted or not local:
                raise
    scratch = Path(tempfile.mkdtemp(dir=spark.conf.get("spark.local.dir", None)))
    try:
        (scratch / "events").mkdir()
        arrange(spark, source, run, scratch / "events")
        arranged = replace(inspect(scratch), described=source.described)
        return _judge_huge(spark, run, arranged, options)
    finally:
        shutil.rmtree(scratch)


def _judge_huge(spark: SparkSession, run: str, source: Source, options: Options) -> Judged:
    """Raises `Unhealthy` if the run does not lend itself to being split."""
    known = with_bare(source.described, pa.table({"run": [run]}), quiesced=options.quiesced)
    [about] = known.to_pylist()
    members = 1 + source.greatest("process") if about["size"] is None else about["size"]
    complete = about["complete"] and not options.torn
    tasks = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    pieces = [group.piece for group in source.groups]
    found = split(pieces, members, options.properties, _Tasks(spark), tasks, complete=complete)
    if about["size"] is None and not all(log.segments for log in found.tally.logs):
        raise Unhealthy("has no manifest, and not all processes have events")
    manifest = Manifest(run, tuple(about["names"]), about["quiesced"], complete=complete)
    return conclude(manifest, found, options.properties, source.rows)


T = TypeVar("T")
R = TypeVar("R")


class _Tasks:
    """`huge.Each`, on Spark."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(self, function: Callable[[T], R], those: Sequence[T], kind: type[R], /) -> list[R]:
        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_what_is_loaded()
            for batch in batches:
                for index in batch.column("id").to_pylist():
                    yield _answer(function, those[index])

        if not those:
            return []
        ids = self._spark.range(len(those), numPartitions=len(those))
        rows = ids.mapInArrow(run, _PARTS).collect()
        reasons = [row for row in rows if row["part"] != "found"]
        if reasons:
            unsorted = [row["part"] == "unsorted" for row in reasons]
            worst = reasons[unsorted.index(False) if not all(unsorted) else 0]
            raise Unhealthy(bytes(worst["payload"]).decode(), unsorted=all(unsorted))
        return [msgspec.json.decode(row["payload"], type=kind) for row in rows]


def _answer(function: Callable[[T], R], one: T) -> pa.RecordBatch:
    try:
        answer, part = msgspec.json.encode(function(one)), "found"
    except Unhealthy as reason:
        answer, part = reason.why.encode(), "unsorted" if reason.unsorted else "unhealthy"
    return pa.RecordBatch.from_pydict({"part": [part], "payload": [answer]}, _ARROW_PARTS)


def judge_frame(events: DataFrame, runs: DataFrame, options: Options) -> Results:
    """Events and runs as DataFrames: `trace.parquet.arrow_schema`, and `described.DESCRIBED`."""
    buckets = max(
        events.rdd.getNumPartitions(), events.sparkSession.sparkContext.defaultParallelism
    )
    packed = pack_frames(events, runs, buckets)
    return Results(_judge_packed(packed, buckets, options), lambda: every_column(events))


_PARTS = "part string, payload binary"
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

    return spark.range(len(work), numPartitions=len(work)).mapInArrow(run, _PARTS)


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

    return packed.repartition(buckets, "bucket").mapInArrow(run, _PARTS)


def _judged(
    events: pa.Table, described: pa.Table, bad: pa.Table, options: Options
) -> Iterator[pa.RecordBatch]:
    """Everything there is to say about some runs. `described` may name runs without events."""
    bad = once(bad)
    if len(bad):
        yield _part("flaws", bad)
        if not options.skip:
            return
    runs = with_bare(described, events, quiesced=options.quiesced)
    runs = with_holes(runs, bad, torn=options.torn)
    judged = judge_rows(events, runs, options.properties, skip=options.skip)
    for name, table in _tables(judged, runs, options):
        yield _part(name, table)


def _tables(judged: Judged, runs: pa.Table, options: Options) -> list[tuple[str, pa.Table]]:
    tables = concluded(judged, runs, options.properties, options.demanded)
    return [(name, one) for name, one in tables.items() if name != "violations" or options.listed]


def _part(name: str, table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"part": [name], "payload": [pack(table)]}, _ARROW_PARTS)
