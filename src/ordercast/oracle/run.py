"""A run as the definitions speak of it: sends, first deliveries, the correct, the past."""

from __future__ import annotations

from functools import cached_property

from ordercast.trace.directory import Trace
from ordercast.trace.event import Event

__all__ = ["Id", "Run", "text"]

Id = tuple[int, int]
Point = tuple[int, int]
"""An event: (process, position)."""


def text(message: Id) -> str:
    return f"{message[0]}:{message[1]}"


class Run:
    def __init__(self, trace: Trace) -> None:
        self.manifest = trace.manifest
        self.members = trace.members
        self.described = trace.described
        self.events = trace.events

    @cached_property
    def sends(self) -> dict[Id, Event]:
        return {event.message: event for event in self.events if event.kind == "send"}

    @cached_property
    def deliveries(self) -> dict[int, dict[Id, list[int]]]:
        """For each process, the positions of every delivery of each message."""
        found: dict[int, dict[Id, list[int]]] = {process: {} for process in self.members}
        for event in self.events:
            if event.kind == "deliver":
                found[event.process].setdefault(event.message, []).append(event.position)
        return found

    def first(self, process: int, message: Id) -> int | None:
        """Where the process first delivered the message; None if it never did."""
        positions = self.deliveries[process].get(message)
        return min(positions) if positions else None

    def addressed(self, message: Id, process: int) -> bool:
        destinations = self.sends[message].destinations
        return process in self.members if destinations is None else process in destinations

    def addressees(self, message: Id) -> list[int]:
        return [process for process in self.members if self.addressed(message, process)]

    def delivered_before(self, process: int, message: Id, position: int) -> bool:
        first = self.first(process, message)
        return first is not None and first < position

    @cached_property
    def correct(self) -> set[int]:
        """Everyone but those whose last crash has no recovery after it."""
        down: dict[int, bool] = {}
        for event in self.events:
            if event.kind in ("crash", "recover"):
                down[event.process] = event.kind == "crash"
        return {process for process in self.members if not down.get(process, False)}

    @cached_property
    def logged(self) -> set[int]:
        return {event.process for event in self.events}

    @cached_property
    def past(self) -> dict[Id, set[Id]]:
        """m is in past[n] when send(m) happened before send(n), by walking every path backwards."""
        causes: dict[Point, list[Point]] = {}
        at: dict[Point, Id] = {}
        previous: dict[int, Point] = {}
        for event in self.events:
            point = (event.process, event.position)
            if event.kind == "send":
                at[point] = event.message
                causes[point] = []
            elif (
                event.kind == "deliver"
                and self.first(event.process, event.message) == event.position
            ):
                send = self.sends.get(event.message)
                causes[point] = [] if send is None else [(send.process, send.position)]
            else:
                continue
            if event.process in previous:
                causes[point].append(previous[event.process])
            previous[event.process] = point
        return {message: _reachable(point, causes, at) - {message} for point, message in at.items()}


def _reachable(start: Point, causes: dict[Point, list[Point]], at: dict[Point, Id]) -> set[Id]:
    seen: set[Point] = set()
    frontier = list(causes[start])
    while frontier:
        point = frontier.pop()
        if point not in seen:
            seen.add(point)
            frontier.extend(causes[point])
    return {at[point] for point in seen if point in at}
