"""Logs of dslab-mp and anysystem: a JSON object per line, `{"MessageSent": {…}}`.

Two levels can be judged. *network*: what processes send to each other (`MessageSent`,
`MessageReceived`), each message for one. *application*: what users hand to a process
(`LocalMessageReceived`) is broadcast, and what a process hands to its user (`LocalMessageSent`) is
delivered; both are the same message if their data is the same.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ordercast.trace.event import Kind
from ordercast.trace.importers.base import Importer, Job, Log, Record, Where
from ordercast.trace.importers.lines import numbered_lines
from ordercast.trace.importers.store import Store, gathered

__all__ = ["DSLAB"]

ENTRIES = ("NodeStarted", "ProcessStarted", "LocalMessage", "Message", "TimerSet", "McStarted")
FATES: dict[str, Kind] = {"NodeCrashed": "crash", "NodeRecovered": "recover"}
LOCAL: dict[str, Kind] = {"LocalMessageReceived": "send", "LocalMessageSent": "deliver"}
SHOWING = ("ProcessStarted", *LOCAL)
"""Whoever has such an entry has a log; so has everyone that something reaches."""


def read(job: Job) -> Generator[Log, None, None]:
    store = Store(job, whole=True)
    to = "everyone" if job.options.level == "application" else "receivers"
    yield from gathered(job, _records(job, store), store=store, to=to)


def _records(job: Job, store: Store) -> Iterator[Record]:
    job.report.clock = "virtual"
    for file in job.files:
        run = job.run if len(job.files) == 1 else file.stem
        nodes: dict[str, list[str]] = {}
        for where, line in numbered_lines(job, file):
            entry = _entry(job, where, line)
            if entry is None:
                continue
            kind, fields = entry
            if kind.startswith("Mc"):
                job.report.note(
                    "what the model checker tried (Mc… entries) is not one run: left out"
                )
                continue
            try:
                if kind in SHOWING:
                    store.member(run, _name(fields, "proc"))
                if kind == "ProcessStarted":
                    nodes.setdefault(fields["node"], []).append(fields["proc"])
                else:
                    yield from _happened(job, run, where, kind, fields, nodes)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                job.report.unusable(where, f"a {kind} without a proper {error}")


def _entry(job: Job, where: Where, line: str) -> tuple[str, dict[str, Any]] | None:
    try:
        row = msgspec.json.decode(line, type=dict[str, dict[str, Any]])
        [(kind, fields)] = row.items()
    except (msgspec.DecodeError, ValueError):
        job.report.unusable(where, 'expected an entry such as {"MessageSent": {…}}')
        return None
    return kind, fields


def _happened(
    job: Job,
    run: str,
    where: Where,
    kind: str,
    fields: dict[str, Any],
    nodes: dict[str, list[str]],
) -> Iterator[Record]:
    time_us = round(float(fields["time"]) * 1e6) if "time" in fields else None
    if kind in FATES:
        for process in nodes.get(fields["node"], [fields["node"]]):
            yield Record(run, process, FATES[kind], where, time_us=time_us)
    elif job.options.level == "application":
        if kind in LOCAL:
            data, size = _data(fields)
            process = _name(fields, "proc")
            yield Record(run, process, LOCAL[kind], where, data, time_us=time_us, bytes=size)
    elif kind == "MessageSent":
        yield Record(
            run,
            _name(fields, "src_proc"),
            "send",
            where,
            str(fields["msg_id"]),
            destinations=(_name(fields, "dst_proc" if "dst_proc" in fields else "dest_proc"),),
            time_us=time_us,
            bytes=_data(fields)[1],
        )
    elif kind == "MessageReceived":
        # The log does not say where: it was where the message was sent to.
        yield Record(run, None, "deliver", where, str(fields["msg_id"]), time_us=time_us)


def _name(fields: dict[str, Any], key: str) -> str:
    name = fields[key]
    if not isinstance(name, str):
        raise KeyError(key)
    return name


def _data(fields: dict[str, Any]) -> tuple[str, int]:
    """What a message says, whatever its type is called; and its size."""
    message = fields.get("msg", {})
    data = message.get("data", fields.get("msg_data", ""))
    text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
    return text, len(text.encode())


def looks(file: Path, head: list[str]) -> bool:
    return bool(head) and head[0].startswith(tuple(f'{{"{entry}' for entry in ENTRIES))


DSLAB = Importer(
    "dslab",
    "dslab-mp and anysystem logs, JSON lines",
    ("level", "to", "crashed"),
    looks,
    read,
    run_each=True,
)
