"""From files to files: a directory that files are added to as a stream, and a running query."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.errors import UsageError
from ordercast.pipeline.paths import plain_paths
from ordercast.pipeline.streaming.checkpoint import resumed
from ordercast.pipeline.streaming.progress import Watcher
from ordercast.pipeline.streaming.sink import DirectorySink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ordercast.pipeline.streaming.form import Form

__all__ = ["read_files", "start"]

_WHATEVER_AGE = {"maxFileAge": "36500d"}
"""Or Spark would pass over a new file that was last changed a week before the newest it has seen,
as those may be that are moved or copied with their times. The price is the names of all files in
memory; in the checkpoint they are anyway."""


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
    stream = spark.readStream.format(format).options(**_WHATEVER_AGE).options(**settings)
    if schema is None and "://" not in source and not any(Path(source).glob("*")):
        raise UsageError(f"{source} has no files yet that would tell their columns: give a schema")
    if Path(source).exists():  # else it may be a pattern
        (source,) = plain_paths([Path(source)])
    if schema is not None:
        return stream.schema(schema).load(source)
    found = spark.read.format(format).options(**settings).load(source).schema
    return stream.schema(found).load(source)


def start(
    ordered: DataFrame,
    sink: DirectorySink,
    checkpoint: str | Path,
    *,
    trigger_ms: int | None,
    form: Form | None = None,
) -> Watcher:
    """The query, running; without a trigger it ends once it has taken what is there. Where the form
    is told, a checkpoint of another one is refused now, and not when a message comes."""
    before = resumed(ordered.sparkSession, checkpoint, form)
    writer = ordered.writeStream.foreachBatch(sink)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if trigger_ms is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{trigger_ms} milliseconds")
    return Watcher(writer.start(), before)
