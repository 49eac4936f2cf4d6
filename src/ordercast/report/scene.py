"""What a diagram shows, before anything has a coordinate: marks, arrows, and waits.

Events that are one act are one mark: a message handed on as it arrives, a process that
delivers its own message as it sends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ordercast.report.history import History, Id, is_prompt, wait_us
from ordercast.report.moments import moments
from ordercast.report.parts import Part
from ordercast.report.words import message_text
from ordercast.trace import Event, Trace
from ordercast.trace.event import MESSAGE_KINDS
from ordercast.trace.waits import read_waits

__all__ = ["Arrow", "Hold", "Mark", "MarkKind", "Scene", "build_scene"]

MarkKind = Literal["send", "arrival", "copy", "deliver", "crash", "recover", "join", "leave"]


@dataclass(frozen=True, slots=True)
class Mark:
    kind: MarkKind
    """`arrival` is the first sight of a message that is not delivered yet; `copy` a later one."""
    events: tuple[Event, ...]
    time_us: int
    """On the diagram's one clock; never before what the mark follows from."""
    again: bool = False
    """A delivery of what this process has delivered before."""

    @property
    def process(self) -> int:
        return self.events[0].process

    @property
    def message(self) -> Id | None:
        return self.events[0].message if self.events[0].kind in MESSAGE_KINDS else None

    @property
    def label(self) -> str:
        """An arrival needs none: the bar that starts there carries it."""
        if self.message is None:
            return self.kind
        text = message_text(self.message)
        return {"send": text, "deliver": f"{text} again" if self.again else text}.get(self.kind, "")

    def has(self, kind: str) -> bool:
        return any(event.kind == kind for event in self.events)


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message on its way to one process. Ends are indexes of marks."""

    message: Id
    process: int
    start: int | None
    end: int | None
    fate: Literal["arrives", "never", "beyond", "orphan", "undrawn"]
    """`beyond`: it arrives after the part that is drawn. `orphan`: its send is not in the log.
    `undrawn`: its send is in the log and not in this part of it."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A message that is here and not delivered yet. Ends are indexes of marks."""

    message: Id
    process: int
    start: int
    end: int | None
    """The delivery, or the crash or departure that ended the wait; None if nothing here did."""
    fate: Literal["delivered", "never", "beyond"]
    wait_us: int | None


@dataclass(frozen=True, slots=True)
class Scene:
    trace: Trace
    part: Part
    zero_us: int
    marks: tuple[Mark, ...]
    """In the order of one clock that agrees with every process."""
    arrows: tuple[Arrow, ...]
    holds: tuple[Hold, ...]
    reasons: dict[tuple[int, str], str]
    """What a held message waited for, by process and message, where the manifest knows it."""

    @property
    def timed(self) -> bool:
        return any(event.time_us is not None for event in self.part.events)

    @property
    def moved(self) -> int:
        """Marks whose own clock says earlier than what they follow from."""
        clocks = ((mark.events[0].time_us, mark.time_us) for mark in self.marks)
        return sum(1 for clock, drawn in clocks if clock is not None and clock < drawn)


def build_scene(trace: Trace, part: Part) -> Scene:
    history = History(trace)
    groups = list(_acts(part.events))
    marks = tuple(
        _mark(history, groups[moment.index], moment.time_us)
        for moment in moments([group[0] for group in groups])
    )
    here = _here(marks)
    return Scene(
        trace=trace,
        part=part,
        zero_us=history.zero_us,
        marks=marks,
        arrows=tuple(_arrows(history, part, marks, here)),
        holds=tuple(_holds(history, marks, here)),
        reasons={
            (wait.process, wait.message): wait.reason(trace.manifest.processes)
            for wait in read_waits(trace.manifest, "held")
        },
    )


def _acts(events: Iterable[Event]) -> Iterator[tuple[Event, ...]]:
    """Neighbours that are about the same message, each the next step of it, and prompt."""
    group: list[Event] = []
    for event in sorted(events, key=lambda event: (event.process, event.position)):
        if group and not _continues(group[-1], event):
            yield tuple(group)
            group = []
        group.append(event)
    if group:
        yield tuple(group)


def _continues(previous: Event, event: Event) -> bool:
    return (
        previous.process == event.process
        and previous.kind in MESSAGE_KINDS
        and event.kind in MESSAGE_KINDS
        and previous.message == event.message
        and MESSAGE_KINDS.index(previous.kind) < MESSAGE_KINDS.index(event.kind)
        and is_prompt(previous, event)
    )


def _mark(history: History, events: tuple[Event, ...], time_us: int) -> Mark:
    first, last = events[0], events[-1]
    if first.kind != "receive" and first.kind != "deliver":
        return Mark(first.kind, events, time_us)
    copy = history.copy(first.message, first.process)
    if last.kind == "deliver":
        return Mark("deliver", events, time_us, again=last != copy.deliveries[0])
    return Mark("arrival" if first == copy.arrival else "copy", events, time_us)


def _here(marks: tuple[Mark, ...]) -> dict[tuple[Id, int], list[int]]:
    """Each message's marks at each process, in that process's order."""
    here: dict[tuple[Id, int], list[int]] = {}
    for index, mark in enumerate(marks):
        if mark.message is not None:
            here.setdefault((mark.message, mark.process), []).append(index)
    return here


def _arrows(
    history: History, part: Part, marks: tuple[Mark, ...], here: dict[tuple[Id, int], list[int]]
) -> Iterator[Arrow]:
    sends = {
        mark.message: index
        for index, mark in enumerate(marks)
        if mark.kind == "send" and mark.message is not None
    }
    for (message, process), indexes in here.items():
        if message not in history.sends:
            yield Arrow(message, process, None, indexes[0], "orphan")
        elif process != message[0]:
            fate: Literal["arrives", "undrawn"] = "arrives" if message in sends else "undrawn"
            yield Arrow(message, process, sends.get(message), indexes[0], fate)
    lanes = set(part.processes)
    for message, start in sends.items():
        if part.messages is not None and message not in part.messages:
            continue
        for process in history.addressees(message):
            if process in lanes and process != message[0] and (message, process) not in here:
                known = history.copy(message, process).arrival is not None
                yield Arrow(message, process, start, None, "beyond" if known else "never")


def _holds(
    history: History, marks: tuple[Mark, ...], here: dict[tuple[Id, int], list[int]]
) -> Iterator[Hold]:
    for (message, process), indexes in here.items():
        start = indexes[0]
        if marks[start].has("deliver"):
            continue
        delivery = history.delivery(message, process)
        if delivery is None:
            # Many logs leave a sender's delivery to itself out, and a coordinator passes on what
            # is not for itself: these are no waits.
            strange = message not in history.sends
            if process != message[0] and (strange or process in history.addressees(message)):
                yield Hold(message, process, start, _departure(marks, start), "never", None)
            continue
        if is_prompt(marks[start].events[-1], delivery):
            continue  # Delivered at once, just after the part that is drawn.
        end = next((index for index in indexes if marks[index].has("deliver")), None)
        fate: Literal["delivered", "beyond"] = "beyond" if end is None else "delivered"
        wait = wait_us(marks[start].events[0], delivery)
        yield Hold(message, process, start, end, fate, wait)


def _departure(marks: tuple[Mark, ...], start: int) -> int | None:
    """Where the process of a mark next crashes or leaves."""
    process = marks[start].process
    for index in range(start, len(marks)):
        if marks[index].process == process and marks[index].kind in ("crash", "leave"):
            return index
    return None
