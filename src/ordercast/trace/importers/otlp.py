"""OpenTelemetry spans as OTLP JSON: an export per line, or one object in the whole file.

A producer span is a send. A consumer span is a delivery of every producer that it links to, or else
of its parent. A span of the operation `receive` is only a receive, since a `process` span tells of
the same message later; `--kinds receive=deliver` says otherwise. The process is the resource's
`service.instance.id`, and its order is that of the spans' start times.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ordercast.errors import TraceError
from ordercast.trace.importers.base import (
    Importer,
    Job,
    Log,
    Record,
    Report,
    Where,
)
from ordercast.trace.importers.kinds import kinds_of
from ordercast.trace.importers.lines import lines_between, numbered_lines, refuse_packed
from ordercast.trace.importers.store import gathered
from ordercast.trace.jsonl import MARK

__all__ = ["OTLP"]

PRODUCER, CONSUMER = (4, "SPAN_KIND_PRODUCER"), (5, "SPAN_KIND_CONSUMER")
OPERATIONS = ("messaging.operation.type", "messaging.operation")
UNNAMED = "unnamed"
DEFAULT_KINDS = {"receive": "receive", "process": "deliver", "settle": ""}


class Value(Struct, frozen=True, rename="camel"):
    string_value: str | None = None


class Attribute(Struct, frozen=True):
    key: str
    value: Value = Value()


class Link(Struct, frozen=True, rename="camel"):
    trace_id: str
    span_id: str


class Span(Struct, frozen=True, rename="camel"):
    trace_id: str
    span_id: str
    start_time_unix_nano: int | str
    kind: int | str = 0
    parent_span_id: str = ""
    links: list[Link] = []
    attributes: list[Attribute] = []


class Scope(Struct, frozen=True):
    spans: list[Span] = []


class Resource(Struct, frozen=True):
    attributes: list[Attribute] = []


class ResourceSpans(Struct, frozen=True, rename="camel"):
    scope_spans: list[Scope] = []
    resource: Resource = Resource()


class Export(Struct, frozen=True, rename="camel"):
    resource_spans: list[ResourceSpans]


_decode = msgspec.json.Decoder(Export).decode


def read(job: Job) -> Generator[Log, None, None]:
    yield from gathered(job, _records(job))


def _records(job: Job) -> Iterator[Record]:
    seen: set[str] = set()
    for file in job.files:
        for record in records_of(job, file):
            seen.add(record.kind)
            yield record
    conclude(job.report, seen)


def records_of(job: Job, file: Path) -> Iterator[Record]:
    """What one file says."""
    job.report.clock = "wall"
    job.report.note("each process's order is that of its spans' start times, ties by line")
    kinds = kinds_of(DEFAULT_KINDS | job.options.kinds, among=("receive", "deliver"))
    for where, export in _exports(job, file):
        for group in export.resource_spans:
            process = _process(job, group.resource)
            for scope in group.scope_spans:
                for span in scope.spans:
                    yield from _span(job, where, process, span, kinds)


def conclude(report: Report, seen: Collection[str]) -> None:
    if "receive" in seen and "deliver" not in seen:
        report.note(
            "there are spans of receives and none of processing: nothing counts as delivered; "
            "to take receives for deliveries, say --kinds receive=deliver"
        )


def _exports(job: Job, file: Path) -> Iterator[tuple[Where, Export]]:
    """Line by line, if one of the first lines is whole; the whole file as one otherwise."""
    head = list(islice(lines_between(file, 0, None), 2))
    refuse_packed(file, b"".join(head))
    if not any(map(_is_json, head)):
        try:
            yield Where(str(file), 1), _decode(file.read_bytes().removeprefix(MARK))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise TraceError(f"{file}: neither one OTLP export nor one per line: {error}") from None
        return
    for where, line in numbered_lines(job, file):
        try:
            yield where, _decode(line)
        except msgspec.DecodeError as error:
            job.report.unusable(where, f"not an OTLP export: {error}")


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _process(job: Job, resource: Resource) -> str:
    told = {one.key: one.value.string_value for one in resource.attributes}
    if name := told.get("service.instance.id"):
        return name
    if name := told.get("service.name"):
        job.report.note(
            "a resource has no service.instance.id: its service.name is taken, as if the service "
            "were one process"
        )
        return name
    job.report.note(
        "a resource has neither service.instance.id nor service.name: all that have none are taken "
        f"for one process, named {UNNAMED!r}"
    )
    return UNNAMED


def _span(
    job: Job, where: Where, process: str, span: Span, kinds: dict[str, str]
) -> Iterator[Record]:
    try:
        nanos = int(span.start_time_unix_nano)
    except ValueError:
        nanos = -1
    if not 0 <= nanos < 2**63:
        job.report.unusable(where, f"the span {span.span_id} has no proper startTimeUnixNano")
        return
    kind, causes = _meaning(job, span, kinds)
    if not kind:
        return
    own, content = _name(span.trace_id, span.span_id), _content(process, nanos, span)
    for link, name in enumerate(causes):
        yield Record(
            *(job.run, process, kind, where, name, nanos),
            time_us=nanos // 1000,
            span=own,
            content=content,
            link=link,
        )


def _meaning(job: Job, span: Span, kinds: dict[str, str]) -> tuple[Any, list[str]]:
    """What kind of event it is, if any, and of which messages."""
    if span.kind in PRODUCER:
        return "send", [_name(span.trace_id, span.span_id)]
    if span.kind not in CONSUMER:
        return "", []
    told = {one.key: one.value.string_value for one in span.attributes}
    operation = next((told[key] for key in OPERATIONS if told.get(key)), None)
    causes = [_name(link.trace_id, link.span_id) for link in span.links]
    if not causes and span.parent_span_id:
        causes = [_name(span.trace_id, span.parent_span_id)]
    if not causes:
        job.report.note("a consumer span has neither link nor parent: left out")
    return kinds.get(operation or "process", "deliver"), causes


def _content(process: str, nanos: int, span: Span) -> int:
    """The same for the same span, on any machine: exporters repeat what was not confirmed."""
    told = (process, nanos, span.kind, span.parent_span_id, span.links, span.attributes)
    digest = blake2b(msgspec.json.encode(told), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def _name(trace: str, span: str) -> str:
    return f"{trace}/{span}".lower()


def looks(file: Path, head: list[str]) -> bool:
    return any('"resourceSpans"' in line for line in head[:2])


OTLP = Importer(
    "otlp",
    "OpenTelemetry spans, OTLP JSON",
    ("kinds", "to", "crashed"),
    looks,
    read,
    records_of,
    conclude,
)
