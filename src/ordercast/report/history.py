"""A trace, indexed by message: who sent it, and what became of it at each process."""

from __future__ import annotations

from dataclasses import dataclass, field

from ordercast.trace import Event, Trace
from ordercast.trace.event import MESSAGE_KINDS

__all__ = ["Copy", "History", "Id", "is_prompt", "name_of", "wait_us"]

Id = tuple[int, int]

PROMPT_US = 100
"""A process that hands a message on within this time, doing nothing else meanwhile, did not
hold it: real clocks tick while the code runs from the arrival to the delivery."""


@dataclass(slots=True)
class Copy:
    """One message at one process, each list in that process's own order."""

    receives: list[Event] = field(default_factory=list)
    deliveries: list[Event] = field(default_factory=list)

    @property
    def arrival(self) -> Event | None:
        """How the message got here: a receive, or the delivery where none is logged."""
        return min(
            (*self.receives[:1], *self.deliveries[:1]),
            key=lambda event: event.position,
            default=None,
        )

    @property
    def held(self) -> tuple[Event, Event] | None:
        """The arrival and the delivery, if the message waited in between."""
        arrival = self.arrival
        if arrival is None or not self.deliveries or arrival is self.deliveries[0]:
            return None
        delivery = self.deliveries[0]
        return None if is_prompt(arrival, delivery) else (arrival, delivery)


class History:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.sends: dict[Id, Event] = {}
        self.copies: dict[tuple[Id, int], Copy] = {}
        known = [event.time_us for event in trace.events if event.time_us is not None]
        self.zero_us = min(known, default=0)
        """Times on the page count from the first event of the run."""
        for event in trace.events:
            if event.kind not in MESSAGE_KINDS:
                continue
            if event.kind == "send":
                self.sends.setdefault(event.message, event)
                continue
            copy = self.copies.setdefault((event.message, event.process), Copy())
            (copy.receives if event.kind == "receive" else copy.deliveries).append(event)

    def copy(self, message: Id, process: int) -> Copy:
        return self.copies.get((message, process)) or Copy()

    def delivery(self, message: Id, process: int) -> Event | None:
        deliveries = self.copy(message, process).deliveries
        return deliveries[0] if deliveries else None

    def addressees(self, message: Id) -> tuple[int, ...]:
        destinations = self.sends[message].destinations
        return self.trace.members if destinations is None else destinations


def is_prompt(earlier: Event, later: Event) -> bool:
    """Did the later event follow at once? Without clocks, being next is all there is to know."""
    wait = wait_us(earlier, later)
    return later.position == earlier.position + 1 and (wait is None or wait <= PROMPT_US)


def wait_us(earlier: Event, later: Event) -> int | None:
    if earlier.time_us is None or later.time_us is None:
        return None
    return max(later.time_us - earlier.time_us, 0)


def name_of(trace: Trace, process: int) -> str:
    names = trace.manifest.processes
    return names[process] if 0 <= process < len(names) and names[process] else f"p{process}"
