"""Which part of a run is drawn: all of it, its beginning, or what proves a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from ordercast.report.focus import Focus, focus_of
from ordercast.report.history import History, Id
from ordercast.report.moments import moments
from ordercast.trace import Event, Trace
from ordercast.trace.event import MESSAGE_KINDS
from ordercast.trace.verdicts import Witness

__all__ = ["Focus", "Part", "messages_of", "slice_for", "whole", "window"]


@dataclass(frozen=True, slots=True)
class Part:
    processes: tuple[int, ...]
    """The lanes, from top to bottom."""
    events: tuple[Event, ...]
    messages: frozenset[Id] | None = None
    """The messages whose missing copies are shown too; None for all that are sent here."""
    focus: Focus | None = None


def whole(trace: Trace) -> Part:
    return Part(_lanes(trace), trace.events)


def window(part: Part, *, events_max: int, processes_max: int) -> Part:
    """The first events in time order, at the first processes that took part in them."""
    first = [part.events[moment.index] for moment in moments(part.events)[:events_max]]
    lanes = part.processes
    if len(lanes) > processes_max:
        busy = {event.process for event in first}
        quiet_last = sorted(lanes, key=lambda process: (process not in busy, process))
        lanes = tuple(sorted(quiet_last[:processes_max]))
    shown = set(lanes)
    events = sorted(
        (event for event in first if event.process in shown),
        key=lambda event: (event.process, event.position),
    )
    return replace(part, processes=lanes, events=tuple(events))


def slice_for(trace: Trace, witness: Witness) -> Part:
    """Only what proves the verdict: the witness's messages at the processes that matter, and,
    where one message reached the other's sender only through others, the chain between them."""
    history = History(trace)
    messages = messages_of(witness)
    chain = _chain(history, *messages) if len(messages) == 2 else []
    links = [*messages[:1], *chain, *messages[1:]]
    processes = {witness.process, *(origin for origin, _ in links)}
    processes |= _deliverers(history, messages, processes, witness.process)
    wanted = {(message, process) for message in messages for process in processes}
    for link, following in pairwise(links):
        wanted |= {(link, link[0]), (link, following[0])}
    return Part(
        processes=tuple(sorted(processes)),
        events=tuple(_events(history, wanted, processes)),
        messages=frozenset(messages),
        focus=focus_of(history, messages, witness.process),
    )


def messages_of(witness: Witness) -> list[Id]:
    """The witness's messages as ids; text that is no id cannot be drawn and is passed over."""
    found = []
    for text in witness.messages:
        origin, _, number = text.partition(":")
        if origin.isdecimal() and number.isdecimal():
            found.append((int(origin), int(number)))
    return list(dict.fromkeys(found))


def _lanes(trace: Trace) -> tuple[int, ...]:
    """A log may name processes that its manifest does not know; they get a lane as well."""
    return tuple(sorted({*trace.members, *(event.process for event in trace.events)}))


def _events(history: History, wanted: set[tuple[Id, int]], processes: set[int]) -> Iterable[Event]:
    for event in history.trace.events:
        if event.kind not in MESSAGE_KINDS:
            if event.process in processes:
                yield event
        elif (event.message, event.process) in wanted:
            # Further copies of a message that is here already prove nothing.
            receives = history.copy(event.message, event.process).receives
            if event.kind != "receive" or event is receives[0]:
                yield event


def _deliverers(
    history: History, messages: list[Id], processes: set[int], culprit: int
) -> set[int]:
    """The others that a verdict compares the culprit with: somebody who delivered what it did
    not, or who handled two messages one after the other where it did so the other way round."""
    more: set[int] = set()
    cycle = [*messages, *messages[:1]] if len(messages) > 1 else []
    for m, n in pairwise(cycle):
        able = [p for p in _handlers(history, m) if _handles_in_order(history, p, m, n)]
        if able and not processes & set(able):
            more.add(able[0])
    for message in messages:
        able = [p for p in _handlers(history, message) if history.delivery(message, p)]
        if history.delivery(message, culprit) is None and not (processes | more) & set(able):
            more.update(able[:1])
    return more


def _handlers(history: History, message: Id) -> list[int]:
    return sorted(p for p in _lanes(history.trace) if _position(history, p, message) is not None)


def _handles_in_order(history: History, process: int, m: Id, n: Id) -> bool:
    first, second = _position(history, process, m), _position(history, process, n)
    return first is not None and second is not None and first < second


def _position(history: History, process: int, message: Id) -> int | None:
    """Where a process delivers a message, or sends one that it never delivers to itself."""
    event = history.delivery(message, process)
    if event is None and message[0] == process:
        event = history.sends.get(message)
    return None if event is None else event.position


def _chain(history: History, m: Id, n: Id) -> list[Id]:
    """The fewest messages that carry m's past to the send of n; none if it needs none, or if m
    did not happen before n. Searched backwards, each delivery looked at once."""
    if m not in history.sends or n not in history.sends:
        return []
    delivered: dict[int, list[Event]] = {}
    for event in history.trace.events:
        if event.kind == "deliver" and event.message in history.sends:
            delivered.setdefault(event.process, []).append(event)
    follows: dict[Id, Id | None] = {n: None}
    looked = dict.fromkeys(delivered, 0)
    frontier = [n]
    while frontier:
        for message in frontier:
            if _knows(history, m, message):
                return _walk(follows, message)
        reached = []
        for message in frontier:
            origin, sent = message[0], history.sends[message].position
            log = delivered.get(origin, [])
            while looked.get(origin, 0) < len(log) and log[looked[origin]].position < sent:
                earlier = log[looked[origin]].message
                looked[origin] += 1
                if earlier not in follows:
                    follows[earlier] = message
                    reached.append(earlier)
        frontier = reached
    return []


def _knows(history: History, m: Id, message: Id) -> bool:
    """Had the sender of a message sent or delivered m itself before?"""
    origin, sent = message[0], history.sends[message].position
    if m[0] == origin and history.sends[m].position < sent:
        return True
    delivery = history.delivery(m, origin)
    return delivery is not None and delivery.position < sent


def _walk(follows: dict[Id, Id | None], message: Id) -> list[Id]:
    """From the message next to m to the one before n."""
    path = []
    while (following := follows[message]) is not None:
        path.append(message)
        message = following
    return path
