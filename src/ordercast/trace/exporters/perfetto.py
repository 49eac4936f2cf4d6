"""Chrome's and Perfetto's trace events: a track per process, a slice per event, arrows from each
send to its deliveries, and a slice for as long as a message was held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ordercast.trace.event import Event
from ordercast.trace.exporters.base import Exporter, Job, words
from ordercast.trace.exporters.cut import few
from ordercast.trace.exporters.sequence import STEP_NS, Times, by_process, moments
from ordercast.trace.runs import Id, text

__all__ = ["PERFETTO"]

EVENTS_MAX = 200_000

Record = dict[str, Any]


def write(job: Job, path: Path) -> int:
    events = few(job.events, EVENTS_MAX, "perfetto")
    logs = by_process(events)
    times = moments(events)
    zero = min(times.values(), default=0)
    times = {at: time_ns - zero for at, time_ns in times.items()}
    with path.open("wb") as file:
        file.write(b'{"displayTimeUnit":"ms","traceEvents":[')
        separator = b"\n"
        for record in _records(job, logs, times):
            file.write(separator + msgspec.json.encode(record))
            separator = b",\n"
        file.write(b"\n]}\n")
    return len(events)


def _records(job: Job, logs: dict[int, list[Event]], times: Times) -> Iterator[Record]:
    sends = {e.message: e for log in logs.values() for e in log if e.kind == "send"}
    arrow = 0
    for process, log in logs.items():
        yield {"ph": "M", "name": "process_name", **_track(process), "args": _name(job, process)}
        yield {"ph": "M", "name": "thread_name", **_track(process), "args": {"name": "events"}}
        arrived: dict[Id, Event] = {}
        delivered: set[Id] = set()
        for place, event in enumerate(log):
            after = log[place + 1] if place + 1 < len(log) else None
            yield _slice(event, after, times)
            if event.kind == "receive":
                arrived.setdefault(event.message, event)
            if event.kind != "deliver" or event.message in delivered:
                continue
            delivered.add(event.message)
            arrival = arrived.get(event.message)
            if arrival is not None and arrival.position + 1 < event.position:
                yield from _held(arrival, event, times)
            if event.message in sends:
                arrow += 1
                yield from _arrow(sends[event.message], event, arrow, times)


def _slice(event: Event, after: Event | None, times: Times) -> Record:
    start = times[event.process, event.position]
    end = start + STEP_NS
    if after is not None:
        end = min(end, times[after.process, after.position])
    return {
        "ph": "X",
        "name": words(event),
        "cat": event.kind,
        **_track(event.process),
        "ts": start / 1_000,
        "dur": (end - start) / 1_000,
        "args": {"position": event.position},
    }


def _held(arrival: Event, delivery: Event, times: Times) -> Iterator[Record]:
    message = text(arrival.message)
    for phase, event in (("b", arrival), ("e", delivery)):
        yield {
            "ph": phase,
            "name": f"{message} held",
            "cat": "held",
            "id": f"{message}@{event.process}",
            **_track(event.process),
            "ts": times[event.process, event.position] / 1_000,
        }


def _arrow(send: Event, delivery: Event, id: int, times: Times) -> Iterator[Record]:
    for phase, event in (("s", send), ("f", delivery)):
        yield {
            "ph": phase,
            **({"bp": "e"} if phase == "f" else {}),
            "name": text(send.message),
            "cat": "message",
            "id": id,
            **_track(event.process),
            "ts": times[event.process, event.position] / 1_000,
        }


def _track(process: int) -> Record:
    """From 1 up: viewers take 0 for the idle process."""
    return {"pid": process + 1, "tid": process + 1}


def _name(job: Job, process: int) -> Record:
    return {"name": job.who(process)}


PERFETTO = Exporter("perfetto", "Chrome trace events: slices, and arrows between them", write)
