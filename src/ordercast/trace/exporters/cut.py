"""A part of a trace: viewers choke on millions of events, so every export can be cut."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ordercast.errors import UsageError
from ordercast.trace.event import MESSAGE_KINDS, Event
from ordercast.trace.runs import Id, text

__all__ = ["HOW_TO_CUT", "Cut", "chosen", "few"]

HOW_TO_CUT = "--processes, --messages, --from and --to, --around, or --witness"

Source = Callable[[], Iterable[Event]]
"""Reads the events anew; some cuts need to look twice."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What to keep: only what passes every test that there is."""

    processes: frozenset[int] = frozenset()
    messages: frozenset[Id] = frozenset()
    start_us: int | None = None
    """Times count from the first event of the run."""
    end_us: int | None = None
    around: frozenset[Id] = frozenset()
    """The events of these messages, and so many events before and after each of them."""
    events: int = 0


def chosen(source: Source, cut: Cut) -> Iterator[Event]:
    """The events that are kept, in the order of the source."""
    near = _near(source, cut) if cut.around else None
    zeros = _zeros(source) if cut.start_us is not None or cut.end_us is not None else None
    for event in source():
        if cut.processes and event.process not in cut.processes:
            continue
        if cut.messages and _message(event) not in cut.messages:
            continue
        if near is not None and not _is_near(event, near, cut.events):
            continue
        if zeros is not None and not _is_within(event, zeros, cut):
            continue
        yield event


def few(events: Iterable[Event], limit: int, format: str) -> list[Event]:
    """All of them, unless there are more than a viewer can take."""
    kept: list[Event] = []
    for event in events:
        kept.append(event)
        if len(kept) > limit:
            raise UsageError(
                f"there are more than {limit:,} events, too many for {format}: cut them with "
                f"{HOW_TO_CUT}"
            )
    return kept


Near = dict[tuple[str, int], list[int]]
"""For each run and process, the positions to stay close to."""


def _near(source: Source, cut: Cut) -> Near:
    near: Near = {}
    missing = set(cut.around)
    for event in source():
        if (message := _message(event)) in cut.around:
            near.setdefault((event.run, event.process), []).append(event.position)
            missing.discard(message)
    if missing:
        raise UsageError(f"there is no message {text(min(missing))} in the trace")
    for positions in near.values():
        positions.sort()
    return near


def _is_near(event: Event, near: Near, distance: int) -> bool:
    positions = near.get((event.run, event.process), [])
    after = bisect_left(positions, event.position - distance)
    return after < len(positions) and positions[after] <= event.position + distance


def _zeros(source: Source) -> dict[str, int]:
    """When the first event of each run was."""
    zeros: dict[str, int] = {}
    for event in source():
        if event.time_us is not None:
            zeros[event.run] = min(event.time_us, zeros.get(event.run, event.time_us))
    if not zeros:
        raise UsageError("the events have no times: cut with --around instead of --from and --to")
    return zeros


def _is_within(event: Event, zeros: dict[str, int], cut: Cut) -> bool:
    if event.time_us is None:
        return False
    time_us = event.time_us - zeros[event.run]
    return (cut.start_us or 0) <= time_us and (cut.end_us is None or time_us <= cut.end_us)


def _message(event: Event) -> Id | None:
    return event.message if event.kind in MESSAGE_KINDS else None
