"""What an exporter is given, and what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ordercast.trace.causality import Causality
from ordercast.trace.event import Event

__all__ = ["DRAWN_MAX", "Exporter", "Job", "words"]

DRAWN_MAX = 300
_VERBS = {
    "send": "sends",
    "receive": "receives",
    "deliver": "delivers",
    "crash": "crashes",
    "recover": "recovers",
    "join": "joins",
    "leave": "leaves",
}


@dataclass(frozen=True, slots=True)
class Job:
    events: Iterable[Event]
    """What was chosen, as a stream."""
    who: Callable[[int], str]
    """The name of a process."""
    causality: Callable[[], Causality]
    """Of the whole run, also of what was cut away."""


@dataclass(frozen=True, slots=True)
class Exporter:
    name: str
    summary: str
    write: Callable[[Job, Path], int]
    """Writes a file and says how many events are in it."""
    whole: bool = False
    """Can it take all runs of a trace at once?"""
    note: str = ""
    """What to tell whoever opens the file."""


def words(event: Event) -> str:
    """Such as `sends 0:3`."""
    message = "" if event.origin is None else f" {event.origin}:{event.number}"
    return f"{_VERBS[event.kind]}{message}"
