"""Sends and receives of a log with vector clocks, by its words and by its clocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing

from ordercast.trace.event import Kind
from ordercast.trace.importers.base import PLACES_SHOWN, Job, Record, compiled
from ordercast.trace.importers.clocks import Clock, Learned, flaws, learn
from ordercast.trace.importers.stamped import Stamped, StampedEvents
from ordercast.trace.importers.store import Store

__all__ = ["infer"]

ORDERLY = ["no_duplication", "no_creation"]
"""What can be promised if late messages may be hidden among the events without news."""
SILENT = (
    "run {run!r}, events that bring nothing new, give nothing new and do not say what they are: "
    "{count}; a message that comes too late looks like that, so FIFO and causal order are not "
    "judged; say with --receive which events are receives"
)
LATE = (
    "run {run!r}, receives that bring nothing new: {count}; each came twice or too late, and the "
    "clocks do not tell which message it was; name it with a group (?<message>…) in --send and "
    "--receive"
)
SEVERAL = "run {run!r}, events that heard from several at once, in the order of names: {count}"
HOLES = "run {run!r}, events that come after a hole, or know of events that are missing: {count}"
FLAWS = "run {run!r}, clocks that cannot be right: {count}"


def infer(job: Job, store: Store, events: Iterable[Stamped]) -> Iterator[Record]:
    """Every host's events in the order of their own entries; then what each of them was."""
    with closing(StampedEvents(job.scratch / "clocks.sqlite")) as table:
        for event in events:
            store.member(event.run, event.host)
            for host in event.clock:
                store.mention(event.run, host)
            table.add(event)
        for run in table.runs():
            yield from _Run(job, table, _Words(job), run).records()


class _Words:
    """What an event's own words say it is."""

    def __init__(self, job: Job) -> None:
        options = job.options
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


class _Run:
    def __init__(self, job: Job, table: StampedEvents, words: _Words, run: str) -> None:
        self._report = job.report
        self._table = table
        self._words = words
        self._run = run
        self._counts: Counter[str] = Counter()
        self._wrong: list[str] = []

    def records(self) -> Iterator[Record]:
        host, last = "", Clock()
        for event in self._table.log(self._run):
            if event.host != host:
                host, last = event.host, {}
            yield from self._event(event, last)
            last = event.clock
        for event in self._table.heard_events(self._run):
            if self._words.say(event.event)[0] != "send":
                yield self._record(event, "send", _own_name(event))
        self._conclude()

    def _event(self, event: Stamped, last: Clock) -> Iterator[Record]:
        self._check(event, last)
        kind, name = self._words.say(event.event)
        if kind == "deliver" and name is not None:
            yield self._record(event, "deliver", name)
            return
        nothing = Learned((), 0)
        told = self._words.name_all and kind != "deliver"
        learned = nothing if told else learn(event.host, last, event.clock, self._clock)
        self._counts[SEVERAL] += len(learned.senders) > 1
        for host, own in learned.senders:
            self._table.hear(self._run, host, own)
            yield self._record(event, "deliver", self._name(host, own), origin=host)
        if kind == "send":
            yield self._record(event, "send", name or _own_name(event))
        elif learned == nothing:
            yield from self._without_news(event, kind, last)

    def _without_news(self, event: Stamped, kind: Kind | None, last: Clock) -> Iterator[Record]:
        if kind == "deliver":
            self._counts[LATE] += 1
            yield self._record(event, "deliver", f"the one of {event.where}")
        elif not self._words.tell_receives and any(host != event.host for host in last):
            self._table.keep_silent(event)

    def _check(self, event: Stamped, last: Clock) -> None:
        """The clocks as a certificate."""
        own, before = event.clock[event.host], last.get(event.host, 0)
        missing = any(
            self._clock(host, time) is None
            for host, time in event.clock.items()
            if host != event.host and time > last.get(host, 0)
        )
        self._counts[HOLES] += own > before + 1 or missing
        for reason in flaws(event.host, last, event.clock, self._clock):
            self._counts[FLAWS] += 1
            if len(self._wrong) < PLACES_SHOWN:
                self._wrong.append(f"{event.where}: the clock of {event.host} is wrong: {reason}")

    def _conclude(self) -> None:
        silent = self._table.silent(self._run)
        if silent:
            self._counts[SILENT] = silent
            self._report.promises[self._run] = ORDERLY
        for words, count in self._counts.items():
            if count:
                self._report.note(words.format(count=count, run=self._run))
        for words in self._wrong:
            self._report.note(words)
        if any(self._counts[words] for words in (HOLES, FLAWS, LATE)):
            self._report.incomplete.add(self._run)

    def _clock(self, host: str, own: int) -> Clock | None:
        found = self._table.find(self._run, host, own)
        return None if found is None else found.clock

    def _name(self, host: str, own: int) -> str:
        """What a send is called: by its own words, or by its place."""
        found = self._table.find(self._run, host, own)
        kind, name = (None, None) if found is None else self._words.say(found.event)
        return name if kind == "send" and name is not None else f"{host}:{own}"

    def _record(
        self, event: Stamped, kind: Kind, message: str, origin: str | None = None
    ) -> Record:
        place = 2 * event.clock[event.host] + (kind == "send")
        run, host, time_us = self._run, event.host, event.time_us
        return Record(run, host, kind, event.where, message, place, origin, time_us=time_us)


def _own_name(event: Stamped) -> str:
    return f"{event.host}:{event.clock[event.host]}"
