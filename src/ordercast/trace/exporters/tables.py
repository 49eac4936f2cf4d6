"""The rows as they are, in one file: for other programs, and of any number."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from ordercast.trace.event import Event
from ordercast.trace.exporters.base import Exporter, Job
from ordercast.trace.jsonl import encode_events
from ordercast.trace.parquet import LogWriter, arrow_schema, to_table

__all__ = ["CSV", "JSONL", "PARQUET"]

ROWS_AT_ONCE = 1 << 15


def write_csv(job: Job, path: Path) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Event.__struct_fields__)
        for event in job.events:
            rows += 1
            values = msgspec.structs.asdict(event)
            if event.destinations is not None:
                values["destinations"] = msgspec.json.encode(event.destinations).decode()
            writer.writerow(values.values())
    return rows


def write_jsonl(job: Job, path: Path) -> int:
    rows = 0
    with path.open("wb") as file:
        for batch in _batches(job):
            file.write(encode_events(batch))
            rows += len(batch)
    return rows


def write_parquet(job: Job, path: Path) -> int:
    arrow_schema()  # Says what to install, if need be.
    rows = 0
    with LogWriter(path) as writer:
        for batch in _batches(job):
            writer.write(to_table(batch))
            rows += len(batch)
    return rows


def _batches(job: Job) -> Iterator[list[Event]]:
    events = iter(job.events)
    while batch := list(islice(events, ROWS_AT_ONCE)):
        yield batch


CSV = Exporter("csv", "one row per event", write_csv, whole=True)
PARQUET = Exporter("parquet", "one row per event, for machines", write_parquet, whole=True)
JSONL = Exporter("jsonl", "one line per event", write_jsonl, whole=True)
