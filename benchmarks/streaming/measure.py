"""The clock: rows a second of whole batches, bytes of state, and time from a file to the sink."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.streaming.streams import FILES_A_BATCH, SCHEMA, Stream
from benchmarks.streaming.subjects import OURS, SUBJECTS
from ordercast.pipeline import streaming

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Speed", "latency_s", "rows_per_s", "speed", "state_bytes_per_held"]

WARM_UP = 1
"""Batches that are not counted: what is compiled and started, is then."""


@dataclass(frozen=True)
class Speed:
    stream: Stream
    subject: str
    rows_per_s: float


def speed(
    spark: SparkSession, stream: Stream, subject: str, place: Path, *, keep: bool = False
) -> Speed:
    checkpoint = place / "state"
    shutil.rmtree(checkpoint, ignore_errors=True)
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH)
    source = reader.parquet(str(stream.write(place / "streams")))
    found = rows_per_s(SUBJECTS[subject](source), checkpoint, batches=stream.batches)
    if not keep:
        shutil.rmtree(checkpoint, ignore_errors=True)
    return Speed(stream, subject, found)


def rows_per_s(plan: DataFrame, checkpoint: Path, *, batches: int) -> float:
    """The fastest batch counts: others use this machine too."""
    writer = plan.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    streaming.await_query(query)
    told = [one for one in query.recentProgress if one.numInputRows]
    assert len(told) == batches, f"{len(told)} batches, not {batches}"
    rates = [one.numInputRows / one.durationMs["triggerExecution"] for one in told[WARM_UP:]]
    return 1000 * max(rates)


def state_bytes_per_held(spark: SparkSession, stream: Stream, place: Path) -> float:
    """After a run of ours through a stream that holds something."""
    speed(spark, stream, OURS, place, keep=True)
    reader = spark.read.format("statestore").option("stateVarName", "held")
    rows = reader.load(str(place / "state")).selectExpr("length(value.value) as bytes").collect()
    waiting = streaming.held(spark, place / "state").count()
    return sum(row.bytes for row in rows) / waiting


def latency_s(spark: SparkSession, stream: Stream, subject: str, place: Path, files: int) -> float:
    """The median over files that come one by one, of the time until their rows are in the sink."""
    source, incoming = stream.write(place / "streams"), place / "incoming"
    for directory in (incoming, place / "state"):
        shutil.rmtree(directory, ignore_errors=True)
    incoming.mkdir()
    seen: dict[int, float] = {}
    sink = _noting(seen)
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    writer = SUBJECTS[subject](reader.parquet(str(incoming))).writeStream.foreachBatch(sink)
    query = writer.option("checkpointLocation", str(place / "state")).start()
    times = []
    try:
        for at, file in enumerate(sorted(source.iterdir())[:files]):
            hidden = incoming / f".{file.name}"
            shutil.copy(file, hidden)
            begun = time.monotonic()
            hidden.rename(incoming / file.name)
            while at not in seen:
                streaming.await_query(query, 0.01)
            times.append(seen[at] - begun)
    finally:
        query.stop()
    return median(times[WARM_UP:])


def _noting(seen: dict[int, float]) -> Callable[[DataFrame, int], None]:
    def sink(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()
        seen[number] = time.monotonic()

    return sink
