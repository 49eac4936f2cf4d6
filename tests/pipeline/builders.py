"""Runs written by hand, one line per process.

s1        sends its number 1 to everyone        s1>0,2    ... to 0 and 2; s1> to nobody
d0:1      delivers 0:1                          r0:1      receives it
crash     and recover, join, leave as they are
-         a position that is left out
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ordercast.trace.directory import TraceWriter
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest


@dataclass(frozen=True)
class Run:
    manifest: Manifest
    events: tuple[Event, ...]


def run(
    name: str,
    *logs: str,
    names: Sequence[str] | None = None,
    quiesced: bool = True,
    complete: bool = True,
    order: str | None = None,
) -> Run:
    processes = tuple(names or (f"p{process}" for process in range(len(logs))))
    manifest = Manifest(name, processes, quiesced=quiesced, complete=complete, order=order)
    events = [
        event(name, process, position, word)
        for process, log in enumerate(logs)
        for position, word in enumerate(log.split())
        if word != "-"
    ]
    return Run(manifest, tuple(events))


def event(name: str, process: int, position: int, word: str) -> Event:
    if word[0] == "s":
        number, subset, chosen = word[1:].partition(">")
        destinations = tuple(int(one) for one in chosen.split(",") if one) if subset else None
        return Event(name, process, position, "send", process, int(number), destinations)
    if word[0] in "dr" and ":" in word:
        origin, _, number = word[1:].partition(":")
        kind = "deliver" if word[0] == "d" else "receive"
        return Event(name, process, position, kind, int(origin), int(number))
    return Event(name, process, position, word)  # type: ignore[arg-type]


def write(directory: Path, runs: Sequence[Run], format: str = "jsonl") -> Path:
    with TraceWriter(directory, format=format) as writer:  # type: ignore[arg-type]
        for one in runs:
            writer.add_manifest(one.manifest)
            for row in one.events:
                writer.write(row)
    return directory
