"""Sends and receives of a log with vector clocks, event by event on one machine's disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import count

from ordercast.trace.importers.base import PLACES_SHOWN, Job, Record, Report
from ordercast.trace.importers.clocks import Clock
from ordercast.trace.importers.meaning import Meaning, Said, Words, meaning_of, tell
from ordercast.trace.importers.stamped import Stamped, StampedEvents
from ordercast.trace.importers.store import AT_ONCE, Store

__all__ = ["SHARE", "infer"]

SHARE = 0.5
"""Of what there is to do behind reading: the other half is to put the records in order."""


def infer(job: Job, store: Store, events: Iterable[Stamped]) -> Iterator[Record]:
    """Every host's events in the order of their own entries; then what each of them was."""
    words, total, done = Words(job.options), 0, count(1)

    def tell() -> None:
        if (understood := next(done)) % AT_ONCE == 0:
            job.arranged(SHARE * understood / total)

    with closing(StampedEvents(job.scratch / "clocks.sqlite")) as table:
        for total, event in enumerate(events, start=1):  # noqa: B007
            store.member(event.run, event.host)
            for host in event.clock:
                store.mention(event.run, host)
            table.add(event)
        for run in table.runs():
            yield from _Run(job.report, table, words, run, tell).records()


class _Run:
    def __init__(
        self,
        report: Report,
        table: StampedEvents,
        words: Words,
        run: str,
        tell: Callable[[], None],
    ) -> None:
        self._report = report
        self._table = table
        self._words = words
        self._run = run
        self._tell = tell
        """That an event is understood."""
        self._counts: Counter[str] = Counter()
        self._wrong: list[str] = []

    def records(self) -> Iterator[Record]:
        host, last = "", Clock()
        find = partial(self._table.find, self._run)
        for event in self._table.log(self._run):
            self._tell()
            if event.host != host:
                host, last = event.host, {}
            meaning = meaning_of(event, last, find, self._words)
            self._count(event, meaning)
            for said in meaning.said:
                yield _record(event, said)
            last = event.clock
        for event in self._table.heard_events(self._run):
            if self._words.say(event.event)[0] != "send":
                yield _record(event, Said("send", f"{event.host}:{event.clock[event.host]}"))
        self._counts["silent"] = self._table.silent(self._run)
        tell(self._report, self._run, self._counts, self._wrong)

    def _count(self, event: Stamped, meaning: Meaning) -> None:
        for point in meaning.heard:
            self._table.hear(self._run, *point)
        if meaning.silent:
            self._table.keep_silent(event)
        self._counts["several"] += len(meaning.heard) > 1
        self._counts["holes"] += meaning.holes
        self._counts["late"] += meaning.late
        self._counts["flaws"] += len(meaning.flaws)
        self._wrong += meaning.flaws[: PLACES_SHOWN - len(self._wrong)]


def _record(event: Stamped, said: Said) -> Record:
    place = 2 * event.clock[event.host] + (said.kind == "send")
    run, host, time_us = event.run, event.host, event.time_us
    return Record(
        *(run, host, said.kind, event.where, said.message, place, said.origin), time_us=time_us
    )
