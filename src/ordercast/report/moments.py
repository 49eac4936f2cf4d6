"""When things happened, on one clock that contradicts nobody's order.

Clocks of different machines disagree, and some logs have none. So every event is moved to
the earliest time that its own clock allows and that is not before what it follows from: the
previous event of its process, and the send of its message.

    on event e:  time(e) = max(clock(e), time(previous event of the process), time(its send))

Taking the earliest ready event each time gives a total order in which times never fall.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.report.history import Id
from ordercast.trace import Event

__all__ = ["Moment", "moments"]


@dataclass(frozen=True, slots=True)
class Moment:
    index: int
    """Which of the events."""
    time_us: int


class _Lane:
    """One process's events that are still to come, and how far its clock has got."""

    def __init__(self, process: int, indexes: list[int], start_us: int) -> None:
        self.process = process
        self.indexes = indexes
        self.at = 0
        self.clock_us = start_us

    @property
    def index(self) -> int:
        return self.indexes[self.at]


def moments(events: Sequence[Event]) -> list[Moment]:
    """Every event once, in an order that agrees with each process and with each message."""
    start_us = min((e.time_us for e in events if e.time_us is not None), default=0)
    sends = {event.message for event in events if event.kind == "send"}
    sent_us: dict[Id, int] = {}
    blocked: dict[Id, list[_Lane]] = {}
    ready: list[tuple[int, int, int, _Lane]] = []
    placed: list[Moment] = []

    def queue(lane: _Lane, *, forced: bool = False) -> None:
        event = events[lane.index]
        needs = _needs(event)
        if needs in sends and needs not in sent_us and not forced:
            assert needs is not None
            blocked.setdefault(needs, []).append(lane)
            return
        sent = sent_us.get(needs, start_us) if needs is not None else start_us
        now = placed[-1].time_us if forced and placed else start_us
        time_us = max(event.time_us or 0, lane.clock_us, sent, now)
        heapq.heappush(ready, (time_us, lane.process, lane.index, lane))

    for lane in _lanes(events, start_us):
        queue(lane)
    while ready or blocked:
        if not ready:  # Only a corrupt log does this: messages that wait for each other's send.
            queue(_release(blocked, events), forced=True)
        time_us, _, index, lane = heapq.heappop(ready)
        placed.append(Moment(index, time_us))
        lane.at, lane.clock_us = lane.at + 1, time_us
        if lane.at < len(lane.indexes):
            queue(lane)
        if events[index].kind == "send":
            sent_us.setdefault(events[index].message, time_us)
            for waiting in blocked.pop(events[index].message, []):
                queue(waiting)
    return placed


def _lanes(events: Sequence[Event], start_us: int) -> list[_Lane]:
    by_process: dict[int, list[int]] = {}
    for index, event in enumerate(events):
        by_process.setdefault(event.process, []).append(index)
    return [
        _Lane(process, sorted(indexes, key=lambda i: (events[i].position, i)), start_us)
        for process, indexes in sorted(by_process.items())
    ]


def _needs(event: Event) -> Id | None:
    """The message whose send must come first. At home, the process's own order says it all."""
    if event.kind not in ("receive", "deliver") or event.origin == event.process:
        return None
    return event.message


def _release(blocked: dict[Id, list[_Lane]], events: Sequence[Event]) -> _Lane:
    """Cut the knot at the lane whose head is earliest."""
    message, lane = min(
        ((message, lane) for message, lanes in blocked.items() for lane in lanes),
        key=lambda pair: (events[pair[1].index].time_us or 0, pair[1].process),
    )
    blocked[message].remove(lane)
    if not blocked[message]:
        del blocked[message]
    return lane
