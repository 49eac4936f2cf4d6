"""Other systems' files, parsed by tasks: a task takes a share of them, and gives back what they say
as rows and what there is to say about them.

    format                              rows
    table, otlp                         records, to be joined: `joining.py`
    shiviz                              events with clocks, to be understood first: `stamps.py`
    broadcast, dslab, maelstrom, jepsen events
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.errors import OrdercastError, TraceError, UsageError
from ordercast.pipeline.blobs import pack
from ordercast.pipeline.reading.shares import Share
from ordercast.pipeline.results import spark_schema
from ordercast.pipeline.shipping import local_path
from ordercast.trace.importers import FORMATS, Options
from ordercast.trace.importers.base import TOO_LARGE, Job, Record, Report, Where
from ordercast.trace.importers.broadcast import events_of, steps
from ordercast.trace.importers.shiviz import stamped_events
from ordercast.trace.importers.sink import in_batches, to_columns
from ordercast.trace.importers.stamped import Stamped
from ordercast.trace.parquet import arrow_schema

__all__ = ["IDS", "RECORDS", "STAMPED", "Told", "parse", "rows_of"]

_SEQ_BITS = 40
"""The order of all rows: the share, and below it the row's place in the share."""
RECORDS = pa.schema(
    {
        "seq": pa.int64(),
        "run": pa.string(),
        "process": pa.string(),
        "kind": pa.string(),
        "file": pa.string(),
        "line": pa.int64(),
        "message": pa.string(),
        "place": pa.int64(),
        "origin": pa.string(),
        "number": pa.int64(),
        "destinations": pa.list_(pa.string()),
        "time_us": pa.int64(),
        "bytes": pa.int32(),
    }
)
"""A `Record`; `place` is null where `seq` is the order."""
STAMPED = pa.schema(
    {
        "seq": pa.int64(),
        "run": pa.string(),
        "host": pa.string(),
        "own": pa.int64(),
        "clock": pa.string(),
        "event": pa.string(),
        "time_us": pa.int64(),
        "file": pa.string(),
        "line": pa.int64(),
    }
)
"""A `Stamped`; `own` is the host's entry of its clock, which is JSON."""
IDS = pa.schema({"run": pa.string(), "origin": pa.int32(), "number": pa.int64(), "id": pa.string()})
_ABOUT = pa.schema({"part": pa.string(), "share": pa.int32(), "payload": pa.binary()})


@dataclass(slots=True)
class Told:
    """What a task says about its share; an import's `Report` as it travels."""

    share: int = 0
    rows: int = 0
    error: str | None = None
    misuse: bool = False
    processes: dict[str, list[str]] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """Of records."""
    bad: int = 0
    places: list[str] = field(default_factory=list)
    clock: str | None = None

    def into(self, report: Report) -> None:
        report.processes |= self.processes
        report.incomplete |= set(self.incomplete)
        for note in self.notes:
            report.note(note)
        report.bad += self.bad
        report.places = [*report.places, *self.places][:5]
        report.clock = self.clock or report.clock


def rows_of(format: str) -> pa.Schema:
    if format == "shiviz":
        return STAMPED
    return arrow_schema() if FORMATS[format].records is None else RECORDS


def parse(
    spark: SparkSession,
    format: str,
    shares: Sequence[Share],
    tokens: dict[Path, str],
    options: Options,
) -> tuple[DataFrame, list[Told]]:
    """out: part (`rows` or `ids`), share (its number), payload (of ids), and the columns of
    `rows_of(format)`; to be unpersisted. And what the tasks say, share by share. Raises the first
    error that any of them met."""
    schema = pa.unify_schemas([_ABOUT, rows_of(format)])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                names = {str(local_path(tokens[file])): str(file) for file in shares[number].files}
                parsed = _Parsed(format, number, shares, names, options)
                for part, given in parsed.parts():
                    table = given if isinstance(given, pa.Table) else _payload(given)
                    yield from _filled(table, part, number, schema).to_batches()

    tasks = spark.range(len(shares), numPartitions=len(shares))
    parts = tasks.mapInArrow(run, spark_schema(schema)).persist()
    rows = parts.where(F.col("part") == "told").select("payload").collect()
    told = [msgspec.json.decode(row["payload"], type=Told) for row in rows]
    told.sort(key=lambda one: one.share)
    for one in told:
        if one.error is not None:
            parts.unpersist()
            raise (UsageError if one.misuse else TraceError)(one.error)
    return parts, told


def _payload(content: bytes) -> pa.Table:
    return pa.table({"payload": pa.array([content], pa.binary())})


def _filled(table: pa.Table, part: str, share: int, schema: pa.Schema) -> pa.Table:
    """With the columns that all parts have; null where this one has nothing to say."""
    known = {"part": pa.repeat(part, len(table)), "share": pa.repeat(share, len(table))}
    columns = known | {name: table[name] for name in table.column_names}
    return pa.table(
        [
            columns[one.name].cast(one.type)
            if one.name in columns
            else pa.nulls(len(table), one.type)
            for one in schema
        ],
        schema=schema,
    )


class _Parsed:
    """One share. `names`: its files as they are called here, and what the user calls them."""

    def __init__(
        self,
        format: str,
        number: int,
        shares: Sequence[Share],
        names: dict[str, str],
        options: Options,
    ) -> None:
        self._format, self._shares, self._names = format, shares, names
        self._share, self._options = shares[number], options
        self._report, self._told = Report(skip_bad_rows=options.skip_bad_rows), Told(number)

    def parts(self) -> Iterator[tuple[str, pa.Table | bytes]]:
        report, told, share = self._report, self._told, self._share
        with tempfile.TemporaryDirectory(prefix="ordercast-") as scratch:
            beside: list[tuple[str, int, int, str]] = []
            several = len(share.files) > 1
            chosen = self._options if several else replace(self._options, run=share.run)
            job = Job(
                *(tuple(map(Path, self._names)), chosen, report, Path(scratch)),
                ids_beside=beside.extend,
                portion=share.portion,
            )
            try:
                for table in self._tables(job):
                    told.rows += len(table)
                    yield "rows", table
                beside += [(*key, text) for key, text in report.ids.items()]
                if beside:
                    yield "ids", pack(_table(beside, IDS))
            except RecursionError:
                told.error = f"{share.files[0]}: something in it is nested too deeply"
            except OrdercastError as error:
                told.error, told.misuse = self._renamed(str(error)), isinstance(error, UsageError)
        told.processes, told.incomplete = report.processes, sorted(report.incomplete)
        told.notes = list(map(self._renamed, report.notes))
        told.bad, told.clock = report.bad, report.clock
        told.places = list(map(self._renamed, report.places))
        yield "told", msgspec.json.encode(told)

    def _renamed(self, words: str) -> str:
        for here, there in self._names.items():
            words = words.replace(here, there).replace(Path(here).name, Path(there).name)
        return words

    def _tables(self, job: Job) -> Iterator[pa.Table]:
        records, file = FORMATS[self._format].records, job.files[0]
        first = self._told.share << _SEQ_BITS
        if records is not None:
            rows = enumerate(_fitting(job, records(job, file)), start=first)
            yield from self._record_tables(rows)
        elif self._format == "shiviz":
            assert job.options.parser is not None
            events = enumerate(stamped_events(job, file, job.options.parser), start=first)
            found = (self._stamped(seq, event) for seq, event in events)
            yield from (_table(some, STAMPED) for some in in_batches(found))
        elif self._format == "broadcast":
            yield from map(to_columns, in_batches(self._broadcast(job)))
        else:
            logs = FORMATS[self._format].read(job)
            yield from map(to_columns, in_batches(chain.from_iterable(log.events for log in logs)))

    def _record_tables(self, rows: Iterable[tuple[int, Record]]) -> Iterator[pa.Table]:
        kinds: set[str] = set()
        for some in in_batches(rows):
            table = _table(((seq, *self._record(record)) for seq, record in some), RECORDS)
            kinds |= set(table["kind"].unique().to_pylist())
            yield table
        self._told.kinds = sorted(kinds)

    def _record(self, record: Record) -> tuple[Any, ...]:
        run, process, kind, where, *rest = record
        return (run, process, kind, str(self._share.files[0]), where.line, *rest)
    
    def _stamped(self, seq: int, event: Stamped) -> tuple[Any, ...]:
        own, clock = event.clock[event.host], json.dumps(event.clock)
        where = Where(str(self._share.files[0]), event.where.line)
        return (seq, event.run, event.host, own, clock, event.event, event.time_us, *where)

    def _broadcast(self, job: Job) -> Iterator[Any]:
        names, share = [one.process for one in self._shares], self._share
        log = steps(job, job.files[0], share.process)
        crashed = share.process in job.options.crashed
        yield from events_of(log, share.run, share.index, names, crashed=crashed)
        job.report.processes[share.run] = names


def _fitting(job: Job, records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        if record.fits:
            yield record
        else:
            job.report.unusable(record.where, TOO_LARGE)


def _table(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, kind.type) for values, kind in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
