"""Maelstrom's journal of the network, as JSON lines: `{"type": "send", "time": …, "message": {…}}`.

*network*: every message between nodes, each for one. *application*: a node sends when a client's
`broadcast` reaches it, and has delivered what its `read_ok` answers show; see `sightings.py`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ordercast.trace.importers.base import Importer, Job, Log, Record, Where
from ordercast.trace.importers.lines import numbered_lines
from ordercast.trace.importers.sightings import Sightings
from ordercast.trace.importers.store import Store, gathered
from ordercast.trace.jsonl import UNREADABLE

__all__ = ["MAELSTROM"]

UNORDERED = ("init", "init_ok", "topology", "topology_ok")


class Message(Struct, frozen=True):
    id: int
    src: str
    dest: str
    body: dict[str, Any] = {}


class Entry(Struct, frozen=True):
    type: Literal["send", "recv"]
    message: Message
    time: int | None = None


_decode = msgspec.json.Decoder(Entry).decode


def read(job: Job) -> Generator[Log, None, None]:
    store = Store(job, whole=True)
    records = _shown if job.options.level == "application" else _exchanged
    to = "everyone" if job.options.level == "application" else "receivers"
    yield from gathered(job, records(job, store), store=store, to=to)


def _entries(job: Job) -> Iterator[tuple[str, Where, Entry, int | None]]:
    for file in job.files:
        run = job.run if len(job.files) == 1 else file.stem
        for where, line in numbered_lines(job, file):
            try:
                entry = _decode(line)
            except msgspec.DecodeError as error:
                job.report.unusable(where, f"not an entry of a journal: {error}")
                continue
            yield run, where, entry, None if entry.time is None else max(0, entry.time) // 1000


def _exchanged(job: Job, store: Store) -> Iterator[Record]:
    for run, where, entry, time_us in _entries(job):
        message = entry.message
        if _is_client(message.src) or _is_client(message.dest):
            continue
        if message.body.get("type") in UNORDERED:
            continue
        sender, receiver, name = message.src, message.dest, str(message.id)
        store.member(run, receiver)
        if entry.type == "send":
            to = (receiver,)
            yield Record(run, sender, "send", where, name, destinations=to, time_us=time_us)
        else:
            yield Record(run, receiver, "deliver", where, name, origin=sender, time_us=time_us)


def _shown(job: Job, store: Store) -> Iterator[Record]:
    sightings = Sightings(job.report)
    for run, where, entry, time_us in _entries(job):
        message, kind = entry.message, entry.message.body.get("type")
        if entry.type == "recv" and kind == "init":
            store.member(run, message.dest)
        elif entry.type == "recv" and kind == "broadcast" and _is_client(message.src):
            value = _text(message.body.get("message"))
            sightings.broadcast(value)
            yield Record(run, message.dest, "send", where, value, time_us=time_us)
        elif entry.type == "send" and kind == "read_ok" and _is_client(message.dest):
            job.report.audience.setdefault(run, set()).add(message.src)
            values = [_text(value) for value in message.body.get("messages", [])]
            yield from sightings.read(run, message.src, values, where, time_us)


def _is_client(name: str) -> bool:
    return name.startswith("c")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def looks(file: Path, head: list[str]) -> bool:
    try:
        return bool(head) and bool(_decode(head[0]))
    except UNREADABLE:
        return False


MAELSTROM = Importer(
    "maelstrom",
    "Maelstrom's network journal, JSON lines",
    ("level", "to", "crashed"),
    looks,
    read,
    run_each=True,
)
