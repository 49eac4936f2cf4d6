"""What one event of a log with vector clocks was, by its words and by its clock.

All it takes is the clock before it at the same host and the events that it newly knows of, so an
execution can be understood event by event, by as many machines as there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ordercast.trace.event import Kind
from ordercast.trace.importers.base import PLACES_SHOWN, Options, Report, compiled
from ordercast.trace.importers.clocks import Clock, Learned, Point, flaws, learn
from ordercast.trace.importers.stamped import Stamped

__all__ = ["COUNTED", "Meaning", "Said", "Words", "meaning_of", "tell"]

ORDERLY = ["no_duplication", "no_creation"]
"""What can be promised if late messages may be hidden among the events without news."""
COUNTED = {
    "holes": "events that come after a hole, or know of events that are missing: {count}",
    "several": "events that heard from several at once, in the order of names: {count}",
    "late": (
        "receives that bring nothing new: {count}; each came twice or too late, and the clocks do "
        "not tell which message it was; name it with a group (?<message>…) in --send and --receive"
    ),
    "flaws": "clocks that cannot be right: {count}",
    "silent": (
        "events that bring nothing new, give nothing new and do not say what they are: {count}; "
        "a message that comes too late looks like that, so FIFO and causal order are not judged; "
        "say with --receive which events are receives"
    ),
}
"""What is counted in each run, and told."""

Find = Callable[[str, int], Stamped | None]
"""An event that another one knows of, by its host and own entry."""


class Said(NamedTuple):
    """A send or delivery that an event was."""

    kind: Kind
    message: str
    origin: str | None = None


class Meaning(NamedTuple):
    said: tuple[Said, ...] = ()
    heard: tuple[Point, ...] = ()
    """The events that it heard from, which so were sends."""
    silent: bool = False
    """It heard nothing; if nobody hears from it either, it may have been anything."""
    holes: bool = False
    late: bool = False
    flaws: tuple[str, ...] = ()


class Words:
    """What an event's own words say it is."""

    def __init__(self, options: Options) -> None:
        self._send = compiled(options.send, "--send") if options.send else None
        self._receive = compiled(options.receive, "--receive") if options.receive else None

    def say(self, event: str) -> tuple[Kind | None, str | None]:
        """The kind of event, and the message's name, as far as they are told."""
        if self._send is not None and (found := self._send.search(event)) is not None:
            return "send", found.groupdict().get("message")
        if self._receive is not None and (found := self._receive.search(event)) is not None:
            return "deliver", found.groupdict().get("message")
        return None, None

    @property
    def tell_receives(self) -> bool:
        return self._receive is not None

    @property
    def name_all(self) -> bool:
        """Then nothing is left to be read off the clocks."""
        patterns = (self._send, self._receive)
        return all(one is not None and "message" in one.groupindex for one in patterns)


def meaning_of(event: Stamped, last: Clock, find: Find, words: Words) -> Meaning:
    """`last`: the clock before it at the same host, empty if it is the first."""

    def clock_of(host: str, own: int) -> Clock | None:
        found = find(host, own)
        return None if found is None else found.clock

    host, clock = event.host, event.clock
    missing = any(
        clock_of(other, time) is None
        for other, time in clock.items()
        if other != host and time > last.get(other, 0)
    )
    holes = missing or clock[host] > last.get(host, 0) + 1
    wrong = tuple(
        f"{event.where}: the clock of {host} is wrong: {reason}"
        for reason in flaws(host, last, clock, clock_of)
    )
    kind, name = words.say(event.event)
    if kind == "deliver" and name is not None:
        return Meaning((Said("deliver", name),), holes=holes, flaws=wrong)
    nothing = Learned((), 0)
    told = words.name_all and kind != "deliver"
    learned = nothing if told else learn(host, last, clock, clock_of)
    said = [Said("deliver", _name(point, find, words), point[0]) for point in learned.senders]
    if kind == "send":
        said.append(Said("send", name or f"{host}:{clock[host]}"))
    late = kind == "deliver" and learned == nothing
    if late:
        said.append(Said("deliver", f"the one of {event.where}"))
    silent = (
        kind is None
        and learned == nothing
        and not words.tell_receives
        and any(other != host for other in last)
    )
    return Meaning(tuple(said), learned.senders, silent, holes, late, wrong)


def _name(point: Point, find: Find, words: Words) -> str:
    """What a send is called: by its own words, or by its place."""
    found = find(*point)
    kind, name = (None, None) if found is None else words.say(found.event)
    return name if kind == "send" and name is not None else f"{point[0]}:{point[1]}"


def tell(report: Report, run: str, counts: Mapping[str, int], wrong: list[str]) -> None:
    """All there is to say about a run: how often each of `COUNTED` was met; the first flaws."""
    if counts["silent"]:
        report.promises[run] = ORDERLY
    for what, words in COUNTED.items():
        if counts[what]:
            report.note(f"run {run!r}, {words.format(count=counts[what])}")
    for flaw in wrong[:PLACES_SHOWN]:
        report.note(flaw)
    if any(counts[what] for what in ("holes", "flaws", "late")):
        report.incomplete.add(run)
