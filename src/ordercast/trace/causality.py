"""What happened before what: process order, and from each send to its deliveries.

Only sends and deliveries count. Of each process an index keeps its log in flat arrays, some twenty
bytes an event, and causes are found backwards: all that a process did up to an event is in that
event's past, so for each process one number tells how far its log is known there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from ordercast.trace.event import Event
from ordercast.trace.runs import Id, text

__all__ = ["Causality", "Log", "Place", "Step"]

Place = tuple[int, int]
"""An event: its process, and its index among the sends and deliveries there."""

DELIVERY, SEND, SEND_HERE = 0, 1, 2


class Step(Struct, frozen=True):
    """One event of a causal chain."""

    process: int
    position: int
    kind: Literal["send", "deliver"]
    message: str


class Log:
    """The sends and deliveries of one process, in its own order."""

    def __init__(self) -> None:
        self.positions = array("q")
        self.origins = array("i")
        self.numbers = array("q")
        self.marks = bytearray()
        self._sent: tuple[array[int], array[int]] = (array("q"), array("q"))

    def __len__(self) -> int:
        return len(self.marks)

    def add(self, position: int, message: Id, mark: int) -> None:
        self.positions.append(position)
        self.origins.append(message[0])
        self.numbers.append(message[1])
        self.marks.append(mark)

    def settle(self) -> None:
        """All is added: sort what did not come in order, and index the sends by number."""
        places: Iterable[int] = range(len(self))
        if any(self.positions[i] > self.positions[i + 1] for i in range(len(self) - 1)):
            places = sorted(places, key=self.positions.__getitem__)
            for name in ("positions", "origins", "numbers"):
                values = getattr(self, name)
                setattr(self, name, array(values.typecode, (values[i] for i in places)))
            self.marks = bytearray(self.marks[i] for i in places)
        sends = [place for place, mark in enumerate(self.marks) if mark != DELIVERY]
        sends.sort(key=self.numbers.__getitem__)
        self._sent = array("q", (self.numbers[i] for i in sends)), array("q", sends)

    def sent(self, number: int) -> int | None:
        """Where the message with this number was sent, for the first time if there are several."""
        numbers, places = self._sent
        found = bisect_left(numbers, number)
        return places[found] if found < len(numbers) and numbers[found] == number else None

    def message(self, place: int) -> Id:
        return self.origins[place], self.numbers[place]


Cover = tuple[int, Place | None]
"""How many events of a process are in the past, and the delivery that says so."""


class Causality:
    """The happens-before relation of one run. `here` is a process whose mail is told apart."""

    def __init__(self, *, here: int | None = None) -> None:
        self.here = here
        self.logs: dict[int, Log] = {}

    def add(self, event: Event) -> None:
        if event.kind not in ("send", "deliver"):
            return
        log = self.logs.setdefault(event.process, Log())
        mark = DELIVERY
        if event.kind == "send":
            to = event.destinations
            mark = SEND_HERE if to is None or self.here in to else SEND
        log.add(event.position, event.message, mark)

    def settle(self) -> Causality:
        """All events are added."""
        for log in self.logs.values():
            log.settle()
        return self

    def sent(self, message: Id) -> Place | None:
        """Where a message was sent, if the log has it."""
        log = self.logs.get(message[0])
        place = None if log is None else log.sent(message[1])
        return None if place is None else (message[0], place)

    def chain(self, earlier: Id, later: Id) -> list[Step]:
        """The shortest chain of events from the one send to the other, with the fewest messages in
        it and then the fewest events; empty if there is none."""
        goal, start = self.sent(earlier), self.sent(later)
        if goal is None or start is None or goal == start:
            return []
        return _Search(self, start).chain_from(goal)

    def past(self, message: Id) -> dict[int, int]:
        """For each process, how many of its sends and deliveries happened before this send."""
        start = self.sent(message)
        if start is None:
            return {}
        search = _Search(self, start)
        while search.fresh:
            search.go_on()
        return {process: covers[-1][0] for process, covers in search.covers.items()}

    def unmet(self, message: Id, position: int) -> list[Id]:
        """What happened before a message, is for the process `here`, and was not delivered
        there before that position: the earliest sends of each origin first."""
        assert self.here is not None
        met = {process: bytearray(len(log)) for process, log in self.logs.items()}
        own = self.logs.get(self.here, Log())
        for place in range(bisect_left(own.positions, position)):
            if own.marks[place] == DELIVERY and (send := self.sent(own.message(place))):
                met[send[0]][send[1]] = 1
        return [
            self.logs[process].message(place)
            for process, limit in sorted(self.past(message).items())
            for place in range(limit)
            if self.logs[process].marks[place] == SEND_HERE and not met[process][place]
            if self.logs[process].message(place) != message
        ]

    def step(self, place: Place) -> Step:
        process, index = place
        log = self.logs[process]
        kind: Literal["send", "deliver"] = "deliver" if log.marks[index] == DELIVERY else "send"
        return Step(process, log.positions[index], kind, text(log.message(index)))


class _Search:
    """Breadth first and backwards, one message further with each round. What a process did up to
    a known event is known too, so each event is looked at once."""

    def __init__(self, causality: Causality, start: Place) -> None:
        self.causality = causality
        self.start = start
        self.covers: dict[int, list[Cover]] = {start[0]: [(start[1], None)]}
        self.fresh = {start[0]: (0, start[1])}
        """For each process, what became known in the last round: from, and up to."""

    def chain_from(self, goal: Place) -> list[Step]:
        step = self.causality.step
        if goal[0] == self.start[0] and goal[1] < self.start[1]:
            return [step(goal), step(self.start)]
        while self.fresh:
            direct = self.go_on(goal)
            if direct is not None:
                return [step(goal), *self._onwards(direct)]
            low, high = self.fresh.get(goal[0], (0, 0))
            if low <= goal[1] < high:
                limit, via = self.covers[goal[0]][-1]
                assert via is not None
                return [step(goal), step((goal[0], limit - 1)), *self._onwards(via)]
        return []

    def go_on(self, goal: Place | None = None) -> Place | None:
        """One round; a delivery of the goal's own message, if there is one in it."""
        reached: dict[int, Cover] = {}
        for process, (low, high) in self.fresh.items():
            log = self.causality.logs[process]
            for index in range(low, high):
                if log.marks[index] != DELIVERY:
                    continue
                send = self.causality.sent(log.message(index))
                if send is None:
                    continue
                if send == goal:
                    return process, index
                if send[1] >= reached.get(send[0], (self._known(send[0]), None))[0]:
                    reached[send[0]] = (send[1] + 1, (process, index))
        self.fresh = {}
        for process, cover in reached.items():
            self.fresh[process] = (self._known(process), cover[0])
            self.covers.setdefault(process, []).append(cover)
        return None

    def _known(self, process: int) -> int:
        covers = self.covers.get(process)
        return covers[-1][0] if covers else 0

    def _onwards(self, delivery: Place) -> list[Step]:
        """From a delivery to the start of the search."""
        step = self.causality.step
        steps = [step(delivery)]
        at: Place | None = delivery
        while at is not None:
            process, index = at
            limit, at = next(cover for cover in self.covers[process] if cover[0] > index)
            if at is not None:
                steps += step((process, limit - 1)), step(at)
        return [*steps, step(self.start)]
