"""From files to files: a directory that files are added to as a stream, and a running query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.errors import UsageError
from ordercast.pipeline.streaming.checkpoint import resumed
from ordercast.pipeline.streaming.progress import Watcher
from ordercast.pipeline.streaming.sink import DirectorySink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_files", "start"]


def read_files(
    spark: SparkSession,
    source: str,
    *,
    format: str,
    schema: str | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A stream of what is in the files, and in those that come; without a schema, as Spark finds
    it in those that are there."""
    settings = dict(options or {})
    if schema is not None:
        return spark.readStream.format(format).options(**settings).schema(schema).load(source)
    if "://" not in source and not any(Path(source).glob("*")):
        raise UsageError(f"{source} has no files yet that would tell their columns: give a schema")
    found = spark.read.format(format).options(**settings).load(source).schema
    return spark.readStream.format(format).options(**settings).schema(found).load(source)


def start(
    ordered: DataFrame, sink: DirectorySink, checkpoint: str | Path, *, trigger_ms: int | None
) -> Watcher:
    """The query, running; without a trigger it ends once it has taken what is there."""
    before = resumed(ordered.sparkSession, checkpoint)
    writer = ordered.writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if trigger_ms is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{trigger_ms} milliseconds")
    return Watcher(writer.start(), before)
