"""The judgement as Spark jobs. Everything that a task gives back is a row (part, payload): the name
of a result table, and some rows of it as Arrow bytes; so one pass over the trace fills them all.
"""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
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
from ordercast.pipeline.events import every_column, read_events
from ordercast.pipeline.huge import (
    WINDOWED,
    Found,
    Segment,
    Tally,
    Unhealthy,
    judge_window,
    scan_pieces,
    windows,
)
from ordercast.pipeline.judging import Judged, judge_rows, warm_up
from ordercast.pipeline.kernels.kernel import WORTH_COMPILING
from ordercast.pipeline.results import DESCRIBED, Results, concluded, once
from ordercast.pipeline.rows import FLAWS, load
from ordercast.pipeline.rules import COLUMNS, flaws, typed
from ordercast.pipeline.shipping import in_tasks, is_local
from ordercast.pipeline.source import Item, Source, digest, huge_runs, inspect, items
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import PROPERTIES, promised

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


def judge_source(spark: SparkSession, source: Source, options: Options) -> Results:
    """A trace on disk."""
    source = whole = source.at(in_tasks(spark, source.files))
    frames: list[DataFrame] = []
    ready: list[tuple[str, pa.Table]] = []
    for run in () if options.skip else huge_runs(source, HUGE_ROWS):
        source, alone = source.split(run)
        try:
            judged = _judge_alone(spark, run, alone, options)
            ready += _tables(judged, _described(alone.manifests.values()), options)
        except Unhealthy:
            pieces = tuple(group.piece for group in alone.groups)
            item = Item(pieces, runs=tuple(alone.manifests.values()))
            frames.append(_judge_items(spark, [item], options))
    ready += [("flaws", pa.Table.from_pylist([lost], FLAWS)) for lost in _lost(source)]
    if source.rows or source.manifests or not (frames or ready):
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
    return _judge_packed(_packed_source(spark, source, each), options, -(-source.rows // each))


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
        arranged = replace(inspect(scratch), manifests=source.manifests)
        return _judge_huge(spark, run, arranged, options)
    finally:
        shutil.rmtree(scratch)


def _judge_huge(spark: SparkSession, run: str, source: Source, options: Options) -> Judged:
    """Raises `Unhealthy` if the run does not lend itself to being split."""
    manifest = source.manifests.get(run)
    members = len(manifest.processes) if manifest else 1 + source.greatest("process")
    described = manifest or Manifest(run, (), quiesced=options.quiesced)
    if not described.complete or options.torn:
        raise Unhealthy
    pieces = [group.piece for group in source.groups]
    # Few tasks: one costs more to start than a row group to look at.
    tasks = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    step = max(1, -(-len(pieces) // tasks))
    cuts = range(0, len(pieces), step)

    def look(index: int) -> list[Segment]:
        return list(scan_pieces(pieces[index : index + step], members))

    segments = [one for part in _each(spark, cuts, look, list[Segment]) for one in part]
    tally = Tally.of(segments, members)
    if manifest is None and not all(log.segments for log in tally.logs):
        raise Unhealthy  # a process that is not there is no member
    found: list[Found] = []
    if any(name in options.properties for name in WINDOWED):
        parts = list(windows(tally, tasks // 2, options.properties))

        def judge(index: int) -> Found:
            return judge_window(parts[index], options.properties)

        found = _each(spark, range(len(parts)), judge, Found)
        if not all(one.causal for one in found):
            raise Unhealthy
    return conclude(described, tally, found, options.properties, source.rows)


T = TypeVar("T")


def _each(
    spark: SparkSession, indices: range, function: Callable[[int], T], kind: type[T]
) -> list[T]:
    """The function's results, each from a task of its own. They are few and small."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                try:
                    answer, part = msgspec.json.encode(function(index)), "found"
                except Unhealthy as reason:
                    answer, part = b"", "unsorted" if reason.unsorted else "unhealthy"
                yield pa.RecordBatch.from_pydict(
                    {"part": [part], "payload": [answer]}, _ARROW_PARTS
                )

    ids = spark.range(indices.start, indices.stop, indices.step, max(len(indices), 1))
    rows = ids.mapInArrow(run, _PARTS).collect()
    parts = {row["part"] for row in rows}
    if parts - {"found"}:
        raise Unhealthy(unsorted="unhealthy" not in parts)
    return [msgspec.json.decode(row["payload"], type=kind) for row in rows]


def judge_frame(events: DataFrame, runs: DataFrame, options: Options) -> Results:
    """Events and runs as DataFrames: `trace.parquet.arrow_schema`, and `results.DESCRIBED`."""
    buckets = max(
        events.rdd.getNumPartitions(), events.sparkSession.sparkContext.defaultParallelism
    )
    names = [name for name in COLUMNS if name in events.columns]

    def pack_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            bad = flaws(table)
            sound = np.ones(len(table), np.bool_)
            sound[[row for row, _ in bad]] = False
            told = [{"flaw": words, "run": table["run"][row].as_py()} for row, words in bad]
            yield from _in_buckets("events", typed(table.filter(pa.array(sound))), buckets)
            yield from _in_buckets("flaws", pa.Table.from_pylist(told, FLAWS), buckets)

    def pack_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            known = {name: batch.column(name) for name in batch.schema.names}
            columns = [known.get(f.name, pa.nulls(len(batch))).cast(f.type) for f in DESCRIBED]
            table = pa.table(columns, schema=DESCRIBED)
            yield from _in_buckets("runs", table, buckets)

    packed = events.select(*names).mapInArrow(pack_events, _BUCKETS)
    described = runs.mapInArrow(pack_runs, _BUCKETS)
    parts = _judge_packed(packed.union(described), options, buckets)
    return Results(parts, lambda: every_column(events))


_PARTS = "part string, payload binary"
_ARROW_PARTS = pa.schema({"part": pa.string(), "payload": pa.binary()})
_BUCKETS = "bucket int, part string, payload binary"


def _judge_items(spark: SparkSession, work: list[Item], options: Options) -> DataFrame:
    if (
        is_local(spark.sparkContext.master or "")
        and sum(item.rows for item in work) >= WORTH_COMPILING
    ):
        warm_up()  # once here, rather than by every worker at the same time

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                item = work[index]
                events, bad = load(item.pieces)
                events = _between(events, item.low, item.high)
                yield from _judged(events, _described(item.runs), bad, options)

    return spark.range(len(work), numPartitions=len(work)).mapInArrow(run, _PARTS)


def _between(events: pa.Table, low: str, high: str | None) -> pa.Table:
    """The rows of an item's own runs: row groups at its ends may hold others as well."""
    if not low and high is None:
        return events
    run = events.column("run").unify_dictionaries()
    if not run.num_chunks:
        return events
    names = run.chunk(0).dictionary.to_pylist()
    mine = np.array([name >= low and (high is None or name < high) for name in names])
    if mine.all():
        return events
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in run.chunks])
    return events.filter(pa.array(mine[codes]))


def _packed_source(spark: SparkSession, source: Source, each: int) -> DataFrame:
    buckets = max(-(-source.rows // each), 1)
    pieces = (*source.lines, *(group.piece for group in source.groups))
    described = _described(source.manifests.values())

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                if index == len(pieces):
                    yield from _in_buckets("runs", described, buckets)
                    continue
                events, bad = load([pieces[index]])
                yield from _in_buckets("events", events, buckets)
                yield from _in_buckets("flaws", bad, buckets)

    size = len(pieces) + 1
    return spark.range(size, numPartitions=size).mapInArrow(run, _BUCKETS)


def _judge_packed(packed: DataFrame, options: Options, buckets: int) -> DataFrame:
    """in: bucket, part (events, runs, flaws), payload; all of a run is in one bucket"""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: dict[int, dict[str, list[pa.Table]]] = {}
        for batch in batches:
            columns = (batch.column(name) for name in ("bucket", "part", "payload"))
            for bucket, part, payload in zip(*columns, strict=True):
                mine = found.setdefault(bucket.as_py(), {"events": [], "runs": [], "flaws": []})
                mine[part.as_py()].append(unpack(payload.as_py()))
        while found:
            _, mine = found.popitem()
            nothing = typed(pa.table({name: pa.nulls(0) for name in COLUMNS}))
            yield from _judged(
                pa.concat_tables([nothing, *mine["events"]]).unify_dictionaries(),
                pa.concat_tables([DESCRIBED.empty_table(), *mine["runs"]]),
                pa.concat_tables([FLAWS.empty_table(), *mine["flaws"]]),
                options,
            )

    return packed.repartition(max(buckets, 1), "bucket").mapInArrow(run, _PARTS)


def _in_buckets(part: str, table: pa.Table, buckets: int) -> Iterator[pa.RecordBatch]:
    """The table's rows by bucket, in blobs of moderate size."""
    if not len(table):
        return
    run = table.column("run")
    words = run if pa.types.is_dictionary(run.type) else run.dictionary_encode()
    for chunk, start in _chunks(words.unify_dictionaries()):
        names = chunk.dictionary.to_pylist()
        bucket_of = np.array([_bucket(name, buckets) for name in names] + [0], np.int32)
        codes = pc.fill_null(chunk.indices, len(names)).to_numpy()
        mine = bucket_of[codes]
        order = np.argsort(mine, kind="stable")
        rows = table.slice(start, len(chunk)).take(pa.array(order))
        edges = [0, *(np.flatnonzero(np.diff(mine[order])) + 1).tolist(), len(order)]
        for begin, end in pairwise(edges):
            for at in range(begin, end, _BLOB_ROWS):
                blob = pack(_compact(rows.slice(at, min(_BLOB_ROWS, end - at))))
                yield pa.RecordBatch.from_pydict(
                    {
                        "bucket": pa.array([mine[order[at]]], pa.int32()),
                        "part": pa.array([part]),
                        "payload": pa.array([blob], pa.binary()),
                    }
                )


def _compact(table: pa.Table) -> pa.Table:
    """Without the names of all the runs that are in other slices."""
    if not pa.types.is_dictionary(table.schema.field("run").type):
        return table
    names = table.column("run").cast(pa.string()).dictionary_encode()
    return table.set_column(table.schema.get_field_index("run"), "run", names)


def _chunks(column: pa.ChunkedArray) -> Iterator[tuple[pa.DictionaryArray, int]]:
    start = 0
    for chunk in column.chunks:
        yield chunk, start
        start += len(chunk)


def _bucket(run: str | None, buckets: int) -> int:
    return zlib.crc32((run or "").encode()) % buckets


def _judged(
    events: pa.Table, described: pa.Table, bad: pa.Table, options: Options
) -> Iterator[pa.RecordBatch]:
    """Everything there is to say about some runs. `described` may name runs without events."""
    bad = once(bad)
    if len(bad):
        yield _part("flaws", bad)
        if not options.skip:
            return
    runs = _with_holes(_with_bare(described, events, options), bad, torn=options.torn)
    judged = judge_rows(events, runs, options.properties, skip=options.skip)
    for name, table in _tables(judged, runs, options):
        yield _part(name, table)


def _tables(judged: Judged, runs: pa.Table, options: Options) -> list[tuple[str, pa.Table]]:
    return list(concluded(judged, runs, options.properties, options.demanded).items())


def _described(manifests: Iterable[Manifest]) -> pa.Table:
    rows = [
        {
            "run": manifest.run,
            "names": manifest.processes,
            "size": len(manifest.processes),
            "quiesced": manifest.quiesced,
            "complete": manifest.complete,
            "promises": promised(manifest, PROPERTIES),
            "manifest": digest(manifest),
        }
        for manifest in manifests
    ]
    return pa.Table.from_pylist(rows, DESCRIBED)


def _with_bare(described: pa.Table, events: pa.Table, options: Options) -> pa.Table:
    """And the runs that nobody wrote a manifest for."""
    seen = pc.unique(events.column("run")).to_pylist() if len(events) else []
    known = set(described.column("run").to_pylist())
    bare = [
        {"run": run, "names": [], "quiesced": options.quiesced, "complete": True}
        for run in seen
        if run not in known
    ]
    return pa.concat_tables([described, pa.Table.from_pylist(bare, DESCRIBED)])


def _with_holes(runs: pa.Table, bad: pa.Table, *, torn: bool) -> pa.Table:
    """A row that was left out is a hole in its run's log."""
    if not len(bad) and not torn:
        return runs
    named = set(bad.column("run").to_pylist())
    complete = [
        row["complete"] and not torn and row["run"] not in named for row in runs.to_pylist()
    ]
    return runs.set_column(runs.schema.get_field_index("complete"), "complete", pa.array(complete))


def _part(name: str, table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"part": [name], "payload": [pack(table)]}, _ARROW_PARTS)
