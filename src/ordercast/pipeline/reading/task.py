"""What one task does: its share of another system's files as rows, with all there is to say about
them.

    format                              rows
    table, otlp                         records, to be joined: `joining.py`
    shiviz                              events with clocks, to be understood first: `stamps.py`
    broadcast, dslab, maelstrom, jepsen events
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from ordercast.errors import OrdercastError, UsageError
from ordercast.pipeline.blobs import pack
from ordercast.pipeline.reading.shares import Share
from ordercast.trace.event import Event
from ordercast.trace.importers import FORMATS, Options
from ordercast.trace.importers.base import PLACES_SHOWN, TOO_LARGE, Job, Record, Report
from ordercast.trace.importers.broadcast import events_of, steps
from ordercast.trace.importers.shiviz import stamped_events
from ordercast.trace.importers.sink import in_batches, to_columns
from ordercast.trace.importers.stamped import Stamped
from ordercast.trace.parquet import arrow_schema

__all__ = ["IDS", "RECORDS", "STAMPED", "Task", "Told", "rows_of"]

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
        "finer": pa.int64(),
        "span": pa.string(),
        "content": pa.int64(),
        "link": pa.int32(),
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
    ids: int = 0
    """How many messages have ids of another kind."""
    bad: int = 0
    places: list[str] = field(default_factory=list)
    clock: str | None = None
    by_position: bool = False

    def into(self, report: Report) -> None:
        report.processes |= self.processes
        report.incomplete |= set(self.incomplete)
        for note in self.notes:
            report.note(note)
        report.bad += self.bad
        report.places = [*report.places, *self.places][:PLACES_SHOWN]
        report.clock = self.clock or report.clock
        report.by_position |= self.by_position


def rows_of(format: str) -> pa.Schema:
    if format == "shiviz":
        return STAMPED
    return arrow_schema() if FORMATS[format].records is None else RECORDS


class Task:
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
                told.ids = len(beside)
                if beside:
                    yield "ids", pack(_table(beside, IDS))
            except RecursionError:
                told.error = f"{share.files[0]}: something in it is nested too deeply"
            except OrdercastError as error:
                told.error, told.misuse = self._renamed(str(error)), isinstance(error, UsageError)
        told.processes, told.incomplete = report.processes, sorted(report.incomplete)
        told.notes = list(map(self._renamed, report.notes))
        told.bad, told.clock, told.by_position = report.bad, report.clock, report.by_position
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
            with closing(FORMATS[self._format].read(job)) as logs:
                rows_in_order = chain.from_iterable(log.events for log in logs)
                yield from map(to_columns, in_batches(rows_in_order))

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
        file, line = str(self._share.files[0]), event.where.line
        return (seq, event.run, event.host, own, clock, event.event, event.time_us, file, line)

    def _broadcast(self, job: Job) -> Iterator[Event]:
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
