"""Other systems' files, parsed by tasks: a task takes the files that belong together, and gives
back what they say as rows and what there is to say about them.

    format                     files that belong together      rows
    table, otlp                one                             records, to be joined: `joining.py`
    dslab, maelstrom, jepsen   those of one run                events
    broadcast                  one, a process's log            events
"""

from __future__ import annotations

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
from ordercast.pipeline.shipping import in_tasks, local_path
from ordercast.trace.importers import FORMATS, Options
from ordercast.trace.importers.base import TOO_LARGE, Job, Record, Report
from ordercast.trace.importers.broadcast import events_of, files_by_process, steps
from ordercast.trace.importers.sink import in_batches, to_columns

__all__ = ["IDS", "RECORDS", "Share", "Told", "parse", "shares_of"]

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
"""A `Record`; `seq` is its place in its share, and `place` is null where that is the order."""
IDS = pa.schema({"run": pa.string(), "origin": pa.int32(), "number": pa.int64(), "id": pa.string()})
_PARTS = "part string, share int, payload binary"
_ARROW_PARTS = pa.schema({"part": pa.string(), "share": pa.int32(), "payload": pa.binary()})


@dataclass(frozen=True, slots=True)
class Share:
    """Files for one task."""

    files: tuple[Path, ...]
    run: str
    process: str = ""
    """Whose log it is, if it is one's."""
    index: int = 0


@dataclass(slots=True)
class Told:
    """What a task says about its share; an import's `Report` as it travels."""

    rows: int = 0
    error: str | None = None
    misuse: bool = False
    processes: dict[str, list[str]] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
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


def shares_of(format: str, files: Sequence[Path], options: Options) -> list[Share]:
    """How the work is divided; raises a `UsageError` where it cannot be."""
    importer, job = FORMATS[format], Job(tuple(files), options, Report(), Path())
    if options.dependencies is not None:
        raise UsageError("localized causal order is judged on one machine: leave out --master")
    if importer.records is not None:
        return [Share((file,), job.run) for file in files]
    if format == "broadcast":
        logs = files_by_process(job)
        return [
            Share((file,), job.run, name, index) for index, (name, file) in enumerate(logs.items())
        ]
    if not importer.run_each:
        raise UsageError(
            f"{format} logs need all files at once, and are imported on one machine, whose memory "
            "need not grow with them: leave out --master"
        )
    if len(files) == 1:
        return [Share(tuple(files), job.run)]
    if options.crashed:
        raise UsageError("--crashed names processes of one run: leave out --master")
    stems = dict.fromkeys(file.stem for file in files)
    return [Share(tuple(file for file in files if file.stem == stem), stem) for stem in stems]


def parse(
    spark: SparkSession, format: str, shares: Sequence[Share], options: Options
) -> tuple[DataFrame, list[Told]]:
    """out: part (`rows` or `ids`), share (its number), payload; to be unpersisted. And what the
    tasks say, share by share. Raises the first error that any of them met."""
    tokens = in_tasks(spark, [file for share in shares for file in share.files])

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                share = shares[number]
                names = {str(local_path(tokens[file])): str(file) for file in share.files}
                for part, payload in _parsed(format, share, names, shares, options):
                    yield pa.RecordBatch.from_pydict(
                        {"part": [part], "share": [number], "payload": [payload]}, _ARROW_PARTS
                    )

    parts = spark.range(len(shares), numPartitions=len(shares)).mapInArrow(run, _PARTS).persist()
    rows = parts.where(F.col("part") == "told").orderBy("share").collect()
    told = [msgspec.json.decode(row["payload"], type=Told) for row in rows]
    for one in told:
        if one.error is not None:
            parts.unpersist()
            raise (UsageError if one.misuse else TraceError)(one.error)
    return parts, told


def _parsed(
    format: str, share: Share, names: dict[str, str], shares: Sequence[Share], options: Options
) -> Iterator[tuple[str, bytes]]:
    """Parts and payloads. `names`: the files as they are called here, and what they are called."""
    report, told = Report(skip_bad_rows=options.skip_bad_rows), Told()
    with tempfile.TemporaryDirectory(prefix="ordercast-") as scratch:
        beside: list[tuple[str, int, int, str]] = []
        several = len(share.files) > 1
        chosen = options if several else replace(options, run=share.run)
        job = Job(
            *(tuple(map(Path, names)), chosen, report, Path(scratch)), ids_beside=beside.extend
        )
        try:
            for table in _tables(format, job, share, shares):
                told.rows += len(table)
                yield "rows", pack(table)
            beside += [(*key, text) for key, text in report.ids.items()]
            if beside:
                yield "ids", pack(_table(beside, IDS))
        except RecursionError:
            told.error = f"{share.files[0]}: something in it is nested too deeply"
        except OrdercastError as error:
            told.error, told.misuse = _renamed(str(error), names), isinstance(error, UsageError)
    told.processes, told.incomplete = report.processes, sorted(report.incomplete)
    told.notes = [_renamed(note, names) for note in report.notes]
    told.bad, told.clock = report.bad, report.clock
    told.places = [_renamed(place, names) for place in report.places]
    yield "told", msgspec.json.encode(told)


def _renamed(words: str, names: dict[str, str]) -> str:
    for here, there in names.items():
        words = words.replace(here, there).replace(Path(here).name, Path(there).name)
    return words


def _tables(format: str, job: Job, share: Share, shares: Sequence[Share]) -> Iterator[pa.Table]:
    records = FORMATS[format].records
    if records is not None:
        file = job.files[0]
        found = enumerate(_fitting(job, records(job, file)), start=1)
        rows = (_row(number, record, share) for number, record in found)
        yield from (_table(some, RECORDS) for some in in_batches(rows))
        return
    if format == "broadcast":
        names = [one.process for one in shares]
        log = steps(job, job.files[0], share.process)
        crashed = share.process in job.options.crashed
        events = events_of(log, share.run, share.index, names, crashed=crashed)
        yield from map(to_columns, in_batches(events))
        job.report.processes[share.run] = names
        return
    logs = FORMATS[format].read(job)
    yield from map(to_columns, in_batches(chain.from_iterable(log.events for log in logs)))


def _fitting(job: Job, records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        if record.fits:
            yield record
        else:
            job.report.unusable(record.where, TOO_LARGE)


def _row(seq: int, record: Record, share: Share) -> tuple[Any, ...]:
    run, process, kind, where, *rest = record
    return (seq, run, process, kind, str(share.files[0]), where.line, *rest)


def _table(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, kind.type) for values, kind in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
