"""Reads of a trace what a page draws: a few runs, and of a huge one its first messages and what is
around its witnesses. The rest never becomes Python objects.

A huge trace is filtered in Arrow, batch by batch. Its first messages are those that each process
had sent when the first rows by the clock end; all rows about them are read, so that what is drawn
as never delivered never was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import SetupError, TraceError
from ordercast.report.excerpt import BESIDE
from ordercast.report.history import Id
from ordercast.report.limits import Limits
from ordercast.report.parts import messages_of
from ordercast.report.sample import Judged, Sample
from ordercast.trace import Event, Trace, read_manifests
from ordercast.trace.directory import event_files
from ordercast.trace.event import MESSAGE_KINDS
from ordercast.trace.own_ids import own_ids

__all__ = ["is_small", "read_samples"]

SMALL_BYTES = 20_000_000
"""JSON lines up to this size are read whole."""
SMALL_ROWS = 100_000
_ORDER = [("time_us", "ascending"), ("position", "ascending"), ("process", "ascending")]


def is_small(path: Path) -> bool:
    """May the whole trace be read?"""
    files = event_files(path)
    lines = sum(file.stat().st_size for file in files if file.suffix == ".jsonl")
    columns = [file for file in files if file.suffix == ".parquet"]
    if lines > SMALL_BYTES or not columns:
        return lines <= SMALL_BYTES
    pq = _arrow("parquet")
    return lines == 0 and sum(pq.read_metadata(file).num_rows for file in columns) <= SMALL_ROWS


def read_samples(
    path: Path, judged: Sequence[Judged], *, limits: Limits, quiesced: bool = False
) -> list[Sample]:
    """The runs that were judged so, or as much of them as the page needs."""
    if is_small(path):
        traces = {trace.manifest.run: trace for trace in Trace.load(path, quiesced=quiesced)}
        return [_whole(_known(traces, one.run, path), one, path) for one in judged]
    rows = _Rows(path)
    runs = {one.run for one in judged}
    manifests = {
        manifest.run: manifest for manifest in read_manifests(path) if manifest.run in runs
    }
    samples = []
    for one in judged:
        size = rows.count(one.run)
        around: list[Event] = []
        if size <= limits.events:
            events = rows.all_of(one.run)
        else:
            events = rows.about(one, first=limits.window_events)
            around = rows.beside(one, events)
        if one.run in manifests:
            trace = Trace.of(manifests[one.run], events)
        else:
            trace = Trace.bare(one.run, events, quiesced=quiesced)
        ids = _own_ids(path, trace, one)
        samples.append(Sample(trace, size, one, around, source=str(path), own_ids=ids))
    return samples


def _whole(trace: Trace, judged: Judged, path: Path) -> Sample:
    ids = _own_ids(path, trace, judged)
    return Sample(trace, len(trace.events), judged, source=str(path), own_ids=ids)


def _own_ids(path: Path, trace: Trace, judged: Judged) -> dict[str, str]:
    witnesses = (verdict.witness for verdict in judged.verdicts if verdict.witness)
    return own_ids(path, trace.manifest, {name for one in witnesses for name in one.messages})


def _known(traces: Mapping[str, Trace], run: str, path: Path) -> Trace:
    if run not in traces:
        raise TraceError(f"{path}: there is a verdict on run {run!r}, which is not in the trace")
    return traces[run]


def _messages(judged: Judged) -> set[Id]:
    """Those of the witnesses."""
    return {message for v in judged.verdicts if v.witness for message in messages_of(v.witness)}


class _Rows:
    """The rows of a trace on disk, by filters that Arrow applies while it reads."""

    def __init__(self, path: Path) -> None:
        ds = _arrow("dataset")
        from ordercast.trace.parquet import arrow_schema

        schema = arrow_schema()
        files = event_files(path)
        parquet = [str(file) for file in files if file.suffix == ".parquet"]
        lines = [str(file) for file in files if file.suffix == ".jsonl"]
        parts = []
        if parquet:
            parts.append(ds.dataset(parquet, format="parquet", schema=schema))
        if lines:
            parse = _arrow("json").ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            )
            options = ds.JsonFragmentScanOptions(parse)
            form = ds.JsonFileFormat(default_fragment_scan_options=options)
            parts.append(ds.dataset(lines, format=form, schema=schema))
        self._rows = ds.dataset(parts)
        self._field = ds.field

    def count(self, run: str) -> int:
        found: int = self._rows.count_rows(filter=self._field("run") == run)
        return found

    def all_of(self, run: str) -> list[Event]:
        return self._read(self._field("run") == run)

    def about(self, judged: Judged, *, first: int) -> list[Event]:
        """All rows about the first messages, and about those of the witnesses."""
        f = self._field
        last = self._last_sent(judged.run, first)
        wishes = [(f("origin") == origin) & (f("number") <= number) for origin, number in last]
        wishes += [
            (f("origin") == origin) & (f("number") == number)
            for origin, number in sorted(_messages(judged))
        ]
        # Crashes and the like are few, and belong to every picture.
        return self._read((f("run") == judged.run) & reduce(or_, wishes, f("number").is_null()))

    def beside(self, judged: Judged, events: Collection[Event]) -> list[Event]:
        """The rows before and after those of the witnesses."""
        f = self._field
        messages = _messages(judged)
        wishes = [
            (f("process") == event.process)
            & (f("position") >= event.position - BESIDE)
            & (f("position") <= event.position + BESIDE)
            for event in events
            if event.kind in MESSAGE_KINDS and event.message in messages
        ]
        return self._read((f("run") == judged.run) & reduce(or_, wishes)) if wishes else []

    def _last_sent(self, run: str, first: int) -> Iterator[tuple[int, int]]:
        """By origin, the last message that was sent among the first rows by the clock."""
        pa = _arrow()
        columns = ["time_us", "position", "process", "kind", "number"]
        kept = None
        filtered = self._rows.to_batches(columns=columns, filter=self._field("run") == run)
        for batch in filtered:
            table = pa.Table.from_batches([batch])
            kept = table if kept is None else pa.concat_tables([kept, table])
            if len(kept) > first:
                places = _arrow("compute").select_k_unstable(kept, first, _ORDER)
                kept = kept.take(places).combine_chunks()
        if kept is None:
            return
        sends = kept.filter(_arrow("compute").equal(kept["kind"], "send"))
        for row in sends.group_by("process").aggregate([("number", "max")]).to_pylist():
            yield row["process"], row["number_max"]

    def _read(self, wish: Any) -> list[Event]:
        return msgspec.convert(self._rows.to_table(filter=wish).to_pylist(), list[Event])


def _arrow(name: str = "") -> Any:
    """Arrow, or a part of it; it comes with the `spark` extra."""
    try:
        return import_module(f"pyarrow.{name}" if name else "pyarrow")
    except ImportError:
        raise SetupError(
            "a trace of this size needs pyarrow: pip install 'ordercast[judge]'"
        ) from None
