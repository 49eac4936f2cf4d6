"""Traces for other people's tools. One file per kind of format, all with the same small interface:
a job in, a file and a number of events out. `FORMATS` lists them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ordercast.errors import UsageError
from ordercast.trace.causality import Causality
from ordercast.trace.directory import read_events
from ordercast.trace.event import Event
from ordercast.trace.exporters.base import Exporter, Job
from ordercast.trace.exporters.cut import Cut, chosen
from ordercast.trace.exporters.drawings import DOT, MERMAID
from ordercast.trace.exporters.otlp import OTLP
from ordercast.trace.exporters.perfetto import PERFETTO
from ordercast.trace.exporters.shiviz import SHIVIZ
from ordercast.trace.exporters.tables import CSV, JSONL, PARQUET
from ordercast.trace.runs import OneRun, without_contradiction
from ordercast.trace.writing import appearing

__all__ = ["FORMATS", "Cut", "Exporter", "causality_of", "export_trace"]

FORMATS: dict[str, Exporter] = {
    exporter.name: exporter
    for exporter in (SHIVIZ, PERFETTO, OTLP, DOT, MERMAID, CSV, PARQUET, JSONL)
}


def export_trace(run: OneRun, file: Path, *, format: str, cut: Cut) -> int:
    """Write what the cut leaves of a run, or of all runs if none is named and the format can take
    them. The file appears when it is whole; a link stays one, and what is no file, such as a pipe
    or /dev/null, is written to and never replaced. Returns how many events are in it."""
    exporter = FORMATS[format]

    def source() -> Iterator[Event]:
        if exporter.whole and not run.named:
            return without_contradiction(read_events(run.trace), run.trace)
        return run.events()

    if file.is_dir():
        raise UsageError(f"{file}: is a directory: name a file to write to")
    if not file.parent.is_dir():
        raise UsageError(f"{file}: there is no directory {file.parent} to write it to")
    job = Job(chosen(source, cut), run.who, lambda: causality_of(run))
    with appearing(file) as part:
        events = exporter.write(job, part)
        if not events:
            raise UsageError("nothing is left after the cut, so there is nothing to export")
    return events


def causality_of(run: OneRun) -> Causality:
    causality = Causality()
    for event in run.events():
        causality.add(event)
    return causality.settle()
