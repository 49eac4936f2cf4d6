"""OpenTelemetry spans as OTLP JSON, one export per line: a producer span for each send, a consumer
span for each arrival and each delivery, linked to it. All spans are short: what a log knows are
moments."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from ordercast.trace.event import Event
from ordercast.trace.exporters.base import Exporter, Job, words
from ordercast.trace.exporters.cut import few
from ordercast.trace.exporters.sequence import Times, by_process, moments
from ordercast.trace.runs import text

__all__ = ["OTLP"]

EVENTS_MAX = 200_000
SPANS_AT_ONCE = 1_000
_KINDS = {"send": 4, "receive": 5, "deliver": 5}
_INTERNAL = 1
_OPERATIONS = {"send": "send", "receive": "receive", "deliver": "process"}


def write(job: Job, path: Path) -> int:
    events = few(job.events, EVENTS_MAX, "otlp")
    times = moments(events)
    with path.open("wb") as file:
        for process, log in by_process(events).items():
            who = {"service.name": "ordercast", "service.instance.id": job.who(process)}
            resource = {"attributes": _attributes(who)}
            for start in range(0, len(log), SPANS_AT_ONCE):
                spans = [_span(event, times) for event in log[start : start + SPANS_AT_ONCE]]
                scope = {"scope": {"name": "ordercast"}, "spans": spans}
                export = {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}
                file.write(msgspec.json.encode(export) + b"\n")
    return len(events)


def _span(event: Event, times: Times) -> dict[str, Any]:
    start_ns = times[event.process, event.position]
    told: dict[str, str | int] = {"ordercast.position": event.position}
    about, links = f"{event.process}@{event.position}", []
    if event.kind in _OPERATIONS:
        message = text(event.message)
        told["messaging.system"] = "ordercast"
        told["messaging.operation.type"] = _OPERATIONS[event.kind]
        told["messaging.message.id"] = message
        if event.kind == "send":
            about = message
        else:
            links = [_ids(event.run, message, message)]
    trace = about if event.origin is None else text(event.message)
    return {
        **_ids(event.run, trace, about),
        "name": words(event),
        "kind": _KINDS.get(event.kind, _INTERNAL),
        "startTimeUnixNano": str(start_ns),
        "endTimeUnixNano": str(start_ns),
        "attributes": _attributes(told),
        "links": links,
    }


def _ids(run: str, trace: str, span: str) -> dict[str, str]:
    """The same in every export of the trace. A message is a trace; its send has its name."""
    return {
        "traceId": blake2b(f"{run}/{trace}".encode(), digest_size=16).hexdigest(),
        "spanId": blake2b(f"{run}/{span}".encode(), digest_size=8).hexdigest(),
    }


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "key": key,
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
        }
        for key, value in values.items()
    ]


OTLP = Exporter("otlp", "OpenTelemetry spans, OTLP JSON", write)
