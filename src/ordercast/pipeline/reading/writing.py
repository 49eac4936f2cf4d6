"""Another system's log as a trace on disk, written by tasks: `ordercast import --master`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path

from pyspark.sql import SparkSession

from ordercast.pipeline.parts import Format, require_shared, write_parts
from ordercast.pipeline.reading import open_log
from ordercast.pipeline.reading.parsing import shares_of
from ordercast.pipeline.session import session
from ordercast.trace.importers import Imported, Options, detect, source_files
from ordercast.trace.importers.sink import TraceSink

__all__ = ["import_log"]

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
) -> Imported:
    """As `trace.importers.import_trace`, in `spark` or in a session of its own. What can be refused
    at once is refused before Spark starts."""
    options = options or Options()
    files = source_files(list(sources))
    name = detect(files[0]) if format == "auto" else format
    shares_of(name, files, options)
    sink = TraceSink(trace, write)
    opened = session(master=master, config=config, verbose=verbose) if spark is None else None
    try:
        with opened or nullcontext(spark) as running:
            assert running is not None
            require_shared(running)
            log = open_log(running, files, format=name, options=options)
            try:
                events = sink.scratch / "events"
                write_parts(log.events.orderBy(*_ORDER), events, write)
                if log.ids is not None:
                    ids = log.ids.orderBy("run", "origin", "number")
                    write_parts(ids, sink.scratch / "messages", write)
                count = _lines(running, events, write)
            finally:
                log.release()
        sink.finish(log.manifests)
    finally:
        sink.abandon()
    return Imported(name, count, log.report)


def _lines(spark: SparkSession, events: Path, write: Format) -> int:
    """How many events were written: cheaper than to count them again."""
    path = str(events.absolute())
    return (spark.read.parquet(path) if write == "parquet" else spark.read.text(path)).count()
