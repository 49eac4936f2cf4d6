"""A huge run by itself: many tasks judge it together."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from ordercast.pipeline.arrange import arrange
from ordercast.pipeline.blocks import judge_blocks, logs_of
from ordercast.pipeline.conclude import conclude
from ordercast.pipeline.described import with_bare
from ordercast.pipeline.huge import Unhealthy, split
from ordercast.pipeline.judged import Judged
from ordercast.pipeline.options import Options
from ordercast.pipeline.rows import Piece
from ordercast.pipeline.shipping import is_local
from ordercast.pipeline.source import Source
from ordercast.pipeline.workers import keep_memory, keep_what_is_loaded
from ordercast.trace.manifest import Manifest

__all__ = ["judge_alone"]

_TASKS_PER_CORE = 4


def judge_alone(spark: SparkSession, run: str, source: Source, options: Options) -> Judged:
    """A run with nothing else in its row groups; one whose rows lie anyhow is put in order first,
    where there is a place for it that all tasks can reach.

    Raises `Unhealthy` if the run does not lend itself to being split.
    """
    pieces = [group.piece for group in source.groups]
    local = is_local(spark.sparkContext.master or "")
    if source.in_order or not local:
        try:
            return _judge(spark, run, source, pieces, options)
        except Unhealthy as reason:
            if not reason.unsorted or not local:
                raise
    scratch = Path(tempfile.mkdtemp(dir=spark.conf.get("spark.local.dir", None)))
    try:
        pieces = arrange(source.groups, scratch, _Tasks(spark))
        return _judge(spark, run, source, pieces, options)
    finally:
        shutil.rmtree(scratch)


def _judge(
    spark: SparkSession, run: str, source: Source, pieces: Sequence[Piece], options: Options
) -> Judged:
    """The pieces: where the source's events are, each process's in order."""
    known = with_bare(source.described, pa.table({"run": [run]}), quiesced=options.quiesced)
    [about] = known.to_pylist()
    members = 1 + source.greatest("process") if about["size"] is None else about["size"]
    complete = about["complete"] and not options.torn
    tasks = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    names = tuple(about["names"] or [f"p{p}" for p in range(members)])
    manifest = Manifest(run, names, about["quiesced"], complete=complete)
    try:
        found = split(pieces, members, options.properties, _Tasks(spark), tasks, complete=complete)
    except Unhealthy as reason:
        if reason.unsorted:
            raise
        if not complete:
            raise Unhealthy(f"{reason.why}, and holes in its log") from None
        logs = logs_of(pieces, members, _Tasks(spark), tasks)
        _check_members(about, [log.rows for log in logs])
        return judge_blocks(logs, manifest, options.properties, _Tasks(spark), tasks)
    _check_members(about, [len(log.segments) for log in found.tally.logs])
    return conclude(manifest, found, options.properties, source.rows)


def _check_members(about: dict[str, Any], logged: Sequence[int]) -> None:
    if about["size"] is None and not all(logged):
        raise Unhealthy("has no manifest, and not all processes have events")


T = TypeVar("T")
R = TypeVar("R")

_ANSWERS = pa.schema({"kind": pa.string(), "answer": pa.binary()})


class _Tasks:
    """`huge.Each`, on Spark."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(self, function: Callable[[T], R], those: Sequence[T], kind: type[R], /) -> list[R]:
        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_what_is_loaded()
            keep_memory()
            for batch in batches:
                for index in batch.column("id").to_pylist():
                    yield _answer(function, those[index])

        if not those:
            return []
        ids = self._spark.range(len(those), numPartitions=len(those))
        rows = ids.mapInArrow(run, "kind string, answer binary").collect()
        reasons = [row for row in rows if row["kind"] != "found"]
        if reasons:
            unsorted = [row["kind"] == "unsorted" for row in reasons]
            worst = reasons[unsorted.index(False) if not all(unsorted) else 0]
            raise Unhealthy(bytes(worst["answer"]).decode(), unsorted=all(unsorted))
        return [msgspec.json.decode(row["answer"], type=kind) for row in rows]


def _answer(function: Callable[[T], R], one: T) -> pa.RecordBatch:
    try:
        answer, kind = msgspec.json.encode(function(one)), "found"
    except Unhealthy as reason:
        answer, kind = reason.why.encode(), "unsorted" if reason.unsorted else "unhealthy"
    return pa.RecordBatch.from_pydict({"kind": [kind], "answer": [answer]}, _ANSWERS)
