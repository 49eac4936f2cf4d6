"""Another system's log as a trace on disk, written by tasks: `ordercast import --master`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.parts import (
    Format,
    require_shared,
    require_shared_by,
    sees_files,
    write_parts,
)
from ordercast.pipeline.paths import plain_paths
from ordercast.pipeline.progress import Tell, followed
from ordercast.pipeline.reading import OtherLog, open_log
from ordercast.pipeline.reading.shares import settled, shares_of, undivided
from ordercast.pipeline.session import session
from ordercast.pipeline.settings import settings_for
from ordercast.pipeline.shipping import SHARED
from ordercast.trace.importers import NOTHING, Imported, Options, detect, source_files
from ordercast.trace.importers.sink import TraceSink

__all__ = ["import_log", "why_here"]

_ORDER = ("run", "process", "position")


def import_log(
    sources: Iterable[Path],
    trace: Path,
    *,
    format: str = "auto",
    options: Options | None = None,
    write: Format = "parquet",
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
    spark: SparkSession | None = None,
    tell: Tell | None = None,
) -> Imported:
    """As `trace.importers.import_trace`, in `spark` or in a session of its own. What can be refused
    at once is refused before Spark starts. `tell` hears how many tasks of how many are done."""
    options = options or Options()
    files = source_files(list(sources))
    name = detect(files[0], options) if format == "auto" else format
    shares_of(name, files, options)
    options = settled(name, files, options)
    settings = settings_for(sum(file.stat().st_size for file in files)) | dict(config or {})
    if spark is None and master is not None:
        require_shared(master, settings)
    sink = TraceSink(trace, write)
    opened = session(master=master, config=settings, verbose=verbose) if spark is None else None
    try:
        with opened or nullcontext(spark) as running:
            assert running is not None
            require_shared_by(running)
            with followed(running, tell):
                count, log = _written(running, files, name, options, sink, write)
        sink.finish(log.manifests)
    finally:
        sink.abandon()
    return Imported(name, count, log.report)


def why_here(
    format: str, files: Sequence[Path], options: Options, *, master: str, config: Mapping[str, str]
) -> str | None:
    """Why a log that is to be judged by this master must be imported on this machine; None if its
    tasks can do that as well."""
    if not sees_files(master, config):
        return f"workers do not see it ({SHARED} is not true)"
    return undivided(format, files, options)


def _written(
    spark: SparkSession,
    files: Sequence[Path],
    format: str,
    options: Options,
    sink: TraceSink,
    write: Format,
) -> tuple[int, OtherLog]:
    log = open_log(spark, files, format=format, options=options)
    try:
        events = write_parts(log.events.orderBy(*_ORDER), sink.scratch / "events", write)
        if log.ids is not None:
            ids = log.ids.orderBy("run", "origin", "number")
            write_parts(ids, sink.scratch / "messages", write)
        count = _count(spark, events, write) if events else 0
        if not count and log.events.isEmpty():
            raise TraceError(f"{files[0]}: {NOTHING}")
        if not count:
            raise UsageError(
                "workers wrote the trace where this machine does not see it: put it where all of "
                "them do (a temporary one goes to TMPDIR)"
            )
        return count, log
    finally:
        log.release()


def _count(spark: SparkSession, files: Sequence[Path], write: Format) -> int:
    """How many events were written: cheaper than to count them before."""
    if write == "parquet":
        return sum(pq.read_metadata(file).num_rows for file in files)
    return spark.read.text(plain_paths(files)).count()
