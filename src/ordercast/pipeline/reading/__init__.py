"""Directories of other systems' logs, larger than one machine: parsed, joined and written by tasks.

The trace is the same, row for row, as the one that `ordercast import` makes on one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.errors import TraceError
from ordercast.pipeline.blobs import unpack
from ordercast.pipeline.described import DESCRIBED, describe
from ordercast.pipeline.reading.joining import join_records
from ordercast.pipeline.reading.parsing import parse
from ordercast.pipeline.reading.repeats import told_once
from ordercast.pipeline.reading.shares import cut, settled, shares_of
from ordercast.pipeline.reading.stamps import understand
from ordercast.pipeline.reading.task import IDS, Told, rows_of
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.shipping import in_tasks
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.importers import FORMATS, NOTHING, Options, detect, source_files
from ordercast.trace.importers.base import Report
from ordercast.trace.importers.store import IDS_IN_MANIFEST
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import arrow_schema

__all__ = ["OtherLog", "open_log", "read_log"]


@dataclass(frozen=True, slots=True)
class OtherLog:
    """Another system's log as a trace that Spark has. `release` it when done."""

    format: str
    events: DataFrame
    """`trace.parquet.arrow_schema`, in any order."""
    manifests: list[Manifest]
    report: Report
    ids: DataFrame | None
    """run, origin, number, id: the messages' own ids, where they are too many for the manifests."""
    kept: tuple[DataFrame, ...]

    def release(self) -> None:
        for frame in self.kept:
            frame.unpersist()


def read_log(
    spark: SparkSession, *sources: Path, format: str = "auto", options: Options | None = None
) -> tuple[DataFrame, DataFrame]:
    """The events and the runs of another system's log, as `pipeline.verify` takes them. Spark keeps
    what was parsed; `open_log` gives something to release."""
    log = open_log(spark, sources, format=format, options=options)
    runs = describe(log.manifests)
    return log.events, spark.createDataFrame(runs.to_pylist(), spark_schema(DESCRIBED))


def open_log(
    spark: SparkSession,
    sources: Iterable[Path],
    *,
    format: str = "auto",
    options: Options | None = None,
) -> OtherLog:
    """The same, with all there is to say about it."""
    options = options or Options()
    files = source_files(list(sources))
    name = detect(files[0], options) if format == "auto" else format
    shares, tokens = shares_of(name, files, options), in_tasks(spark, files)
    options = settled(name, files, options)
    if name == "table":
        shares = cut(spark, shares, tokens)
    parts, told = parse(spark, name, shares, tokens, options)
    kept = [parts]
    try:
        if not any(one.rows for one in told):
            raise TraceError(f"{files[0]}: {NOTHING}")
        report = Report(skip_bad_rows=options.skip_bad_rows)
        for one in told:
            one.into(report)
        rows = parts.where(F.col("part") == "rows").select("share", *rows_of(name).names)
        found = _Found(report, options, kept)
        if rows_of(name) == arrow_schema():
            events, ids, new = found.together(parts, rows, told, name)
        else:
            events, ids, new = found.joined(rows, told, name)
        if 0 < new <= IDS_IN_MANIFEST:
            few = ids.orderBy("run", "origin", "number").collect()
            report.ids |= {(run, origin, number): text for run, origin, number, text in few}
    except BaseException:
        for frame in kept:
            frame.unpersist()
        raise
    manifests = list(report.manifests(name, options, files))
    beside = ids if new > IDS_IN_MANIFEST else None
    return OtherLog(name, events, manifests, report, beside, tuple(kept))


class _Found(NamedTuple):
    """What tasks have parsed, and what is made of it: events, the messages' own ids, and how many
    messages have a number that their log does not have."""

    report: Report
    options: Options
    kept: list[DataFrame]

    def joined(
        self, rows: DataFrame, told: Sequence[Told], format: str
    ) -> tuple[DataFrame, DataFrame, int]:
        """Events of records."""
        records, mentioned = rows.drop("share"), None
        if format == "shiviz":
            understood = understand(records, self.options, self.report)
            self.kept.extend(understood.kept)
            records, mentioned = understood.records, understood.mentioned
        else:
            records = records.withColumn("place", F.coalesce("place", "seq"))
            FORMATS[format].conclude(self.report, {kind for one in told for kind in one.kinds})
            if format == "otlp":
                records = told_once(records, self.report)
        crashed, to = self.options.crashed, self.options.to or "receivers"
        joined = join_records(records, self.report, crashed=crashed, to=to, mentioned=mentioned)
        self.kept.append(joined.kept)
        return joined.events, joined.ids, joined.new_ids

    def together(
        self, parts: DataFrame, rows: DataFrame, told: Sequence[Told], format: str
    ) -> tuple[DataFrame, DataFrame, int]:
        """Events as they are: runs one by one, or processes whose names must be agreed on."""
        self.report.processes = dict(sorted(self.report.processes.items()))
        places = _agree(told, self.report) if format == "broadcast" else {}
        if places:
            other = rows.sparkSession.createDataFrame(
                list(places.items()), "share int, places array<int>"
            )
            known = rows.join(F.broadcast(other), "share", "left")
            origin = F.coalesce(F.get("places", "origin"), "origin")
            rows = known.withColumn("origin", origin)
        return rows.select(*arrow_schema().names), _ids(parts), sum(one.ids for one in told)


def _agree(told: Sequence[Told], report: Report) -> dict[int, list[int]]:
    """Who has no log gets the next index, in the order of the files that mention it; for the shares
    that took another one, which one it is."""
    [run] = report.processes
    known = len(told)
    names = told[0].processes[run][:known]
    places = {}
    for share, one in enumerate(told):
        own = one.processes[run]
        names += [name for name in own[known:] if name not in names]
        if own != names[: len(own)]:
            places[share] = [names.index(name) for name in own]
    report.processes[run] = names
    if len(names) > known:
        report.incomplete.add(run)
        report.note(f"there is no log of {', '.join(names[known:])}")
    return places


def _ids(parts: DataFrame) -> DataFrame:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            for payload in batch["payload"]:
                yield from unpack(payload.as_py()).to_batches()

    mine = parts.where(F.col("part") == "ids").select("payload")
    return mine.mapInArrow(run, spark_schema(IDS))
