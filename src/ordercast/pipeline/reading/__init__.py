"""Directories of other systems' logs, larger than one machine: parsed, joined and written by tasks.

The trace is the same, row for row, as the one that `ordercast import` makes on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.errors import TraceError
from ordercast.pipeline.blobs import unpack
from ordercast.pipeline.described import DESCRIBED, describe
from ordercast.pipeline.reading.joining import join_records
from ordercast.pipeline.reading.parsing import IDS, RECORDS, Told, parse, shares_of
from ordercast.pipeline.results import spark_schema
from ordercast.trace.importers import FORMATS, Options, detect, source_files
from ordercast.trace.importers.base import Report
from ordercast.trace.importers.store import IDS_IN_MANIFEST
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import arrow_schema

__all__ = ["OtherLog", "open_log", "read_log"]

Change = Callable[[int, pa.Table], pa.Table]
"""What is done to a table, by the number of the share that it is of."""


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
    """The same, with all there is to say about it. Needs a format whose files can be read apart."""
    options = options or Options()
    files = source_files(list(sources))
    name = detect(files[0]) if format == "auto" else format
    shares = shares_of(name, files, options)
    parts, told = parse(spark, name, shares, options)
    if not any(one.rows for one in told):
        parts.unpersist()
        raise TraceError(f"{files[0]}: nothing in it is an event that can be judged")
    report = Report(skip_bad_rows=options.skip_bad_rows)
    for one in told:
        one.into(report)
    if FORMATS[name].records is not None:
        events, ids, kept = _joined(parts, told, report, options, name)
    else:
        events, ids, kept = _together(parts, told, report, name)
    count = ids.where("new").count()
    ids = ids.drop("new")
    if 0 < count <= IDS_IN_MANIFEST:
        rows = ids.orderBy("run", "origin", "number").collect()
        report.ids |= {(run, origin, number): text for run, origin, number, text in rows}
    manifests = list(report.manifests(name, options, files))
    beside = ids if count > IDS_IN_MANIFEST else None
    return OtherLog(name, events, manifests, report, beside, (parts, *kept))


def _joined(
    parts: DataFrame, told: Sequence[Told], report: Report, options: Options, format: str
) -> tuple[DataFrame, DataFrame, tuple[DataFrame, ...]]:
    """Events of records, ids, and what is kept for them."""
    before = np.array([0, *accumulate(one.rows for one in told)])

    def numbered(share: int, table: pa.Table) -> pa.Table:
        seq = table["seq"].to_numpy() + before[share]
        return table.set_column(0, "seq", pa.array(seq))

    records = _unpacked(parts, "rows", RECORDS, numbered)
    kinds = [row["kind"] for row in records.select("kind").distinct().collect()]
    FORMATS[format].conclude(report, kinds)
    joined = join_records(records, report, crashed=options.crashed, to=options.to or "receivers")
    return joined.events, joined.messages, (joined.kept,)


def _together(
    parts: DataFrame, told: Sequence[Told], report: Report, format: str
) -> tuple[DataFrame, DataFrame, tuple[DataFrame, ...]]:
    """Events as they are: runs one by one, or processes whose names must be agreed on."""
    report.processes = dict(sorted(report.processes.items()))
    places: dict[int, list[int]] = {}
    if format == "broadcast":
        places = _agree(told, report)

    def renamed(share: int, table: pa.Table) -> pa.Table:
        if share not in places:
            return table
        at = table.schema.get_field_index("origin")
        origin = pa.array(places[share], pa.int32()).take(table["origin"])
        return table.set_column(at, table.schema.field(at), origin)

    events = _unpacked(parts, "rows", arrow_schema(), renamed)
    ids = _unpacked(parts, "ids", IDS, lambda _, table: table)
    return events, ids.withColumn("new", F.lit(True)), ()


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


def _unpacked(parts: DataFrame, part: str, schema: pa.Schema, change: Change) -> DataFrame:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share, payload in zip(batch["share"], batch["payload"], strict=True):
                table = change(share.as_py(), unpack(payload.as_py()))
                yield from table.cast(schema).to_batches()

    mine = parts.where(F.col("part") == part).select("share", "payload")
    return mine.mapInArrow(run, spark_schema(schema))
