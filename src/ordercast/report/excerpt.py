"""The log around a witness: at each process that matters, the rows that prove it and those beside
them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ordercast.report.history import name_of
from ordercast.report.parts import Part, messages_of
from ordercast.report.sample import Sample
from ordercast.report.words import count, instant, message_text
from ordercast.trace import Event
from ordercast.trace.event import MESSAGE_KINDS
from ordercast.trace.verdicts import Witness

__all__ = ["BESIDE", "Excerpt", "Line", "excerpts"]

BESIDE = 2
"""So many rows before and after each row of the witness."""
LINES_MAX = 14


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    """What the row says; where rows are left out, how many."""
    position: str = ""
    time: str = ""
    message: str = ""
    proves: bool = False


@dataclass(frozen=True, slots=True)
class Excerpt:
    process: str
    offends: bool
    lines: tuple[Line, ...]


def excerpts(sample: Sample, part: Part, witness: Witness, *, zero_us: int) -> tuple[Excerpt, ...]:
    """The process that the witness names first, then the others in the order of the lanes."""
    wanted = {
        (event.process, event.position)
        for event in part.events
        if event.kind in MESSAGE_KINDS and event.message in messages_of(witness)
    }
    rows = {(e.process, e.position): e for e in (*sample.around, *sample.trace.events)}
    by_process: dict[int, list[Event]] = {}
    for (process, position), event in sorted(rows.items()):
        near = range(position - BESIDE, position + BESIDE + 1)
        if any((process, other) in wanted for other in near):
            by_process.setdefault(process, []).append(event)
    ends = {event.process: event.position for event in sample.trace.events}
    found = []
    for lane in sorted(by_process, key=lambda lane: (lane != witness.process, lane)):
        end = None if sample.partial else ends[lane]
        lines = tuple(_lines(by_process[lane][:LINES_MAX], wanted, end, zero_us))
        name = name_of(sample.trace, lane)
        found.append(Excerpt(name, lane == witness.process, lines))
    return tuple(found)


def _lines(
    rows: Sequence[Event], wanted: Collection[tuple[int, int]], end: int | None, zero_us: int
) -> Iterator[Line]:
    """`end` is the last position of the log, if it is known."""
    following = 0
    for event in rows:
        if event.position > following:
            yield Line(_skipped(event.position - following))
        yield Line(
            text=event.kind,
            position=f"{event.position:,}",
            time="" if event.time_us is None else instant(max(event.time_us - zero_us, 0), 1),
            message=message_text(event.message) if event.kind in MESSAGE_KINDS else "",
            proves=(event.process, event.position) in wanted,
        )
        following = event.position + 1
    if end is None:
        yield Line("what follows is not shown")
    elif following <= end:
        yield Line(_skipped(end + 1 - following))


def _skipped(rows: int) -> str:
    return f"{count(rows, 'row')} not shown"
