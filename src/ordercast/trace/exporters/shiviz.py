"""ShiViz: each event as two lines, its words and its vector clock.

A clock counts the events that were exported and nothing else, yet it knows of all that happened
before, also through events that were cut away. So what ShiViz draws as concurrent is concurrent.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from ordercast.trace.causality import Causality
from ordercast.trace.event import Event
from ordercast.trace.exporters.base import Exporter, Job, words
from ordercast.trace.exporters.cut import few
from ordercast.trace.exporters.sequence import by_process, sequence

__all__ = ["PARSER", "SHIVIZ", "stamps"]

EVENTS_MAX = 20_000
PARSER = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"

Clock = tuple[int, ...]


def write(job: Job, path: Path) -> int:
    events = few(job.events, EVENTS_MAX, "shiviz")
    processes = sorted({event.process for event in events})
    hosts = _hosts(job, processes)
    clocks = stamps(job.causality(), events)
    with path.open("w", encoding="utf-8") as file:
        for event in sequence(events):
            clock = clocks[event.process, event.position]
            known = {host: n for host, n in zip(hosts.values(), clock, strict=True) if n}
            file.write(f"{words(event)}\n{hosts[event.process]} {json.dumps(known)}\n")
    return len(events)


def stamps(causality: Causality, events: list[Event]) -> dict[tuple[int, int], Clock]:
    """For each event, by process and position, how many of the events of each process (in the
    order of their indices) happened before it or are it."""
    return _Clocks(causality, by_process(events)).run()


class _Clocks:
    """Plays the whole run: a delivery waits for its send. Most events change no clock, and then
    the tuple is shared."""

    def __init__(self, causality: Causality, shown: dict[int, list[Event]]) -> None:
        self.causality, self.shown = causality, shown
        self.column = {process: column for column, process in enumerate(sorted(shown))}
        self.now: dict[int, Clock] = {}
        self.next = dict.fromkeys(causality.logs, 0)
        self.told = dict.fromkeys(shown, 0)
        self.sent: dict[int, list[Clock | None]] = {
            process: [None] * len(log) for process, log in causality.logs.items()
        }
        self.waiting: dict[tuple[int, int], list[int]] = {}
        self.found: dict[tuple[int, int], Clock] = {}

    def run(self) -> dict[tuple[int, int], Clock]:
        ready = list(self.causality.logs)
        while ready or self.waiting:
            if not ready:
                # The log says that a message came before its send: that one counts for nothing.
                stuck = min(self.waiting, key=lambda send: self.waiting[send])
                ready = self.waiting.pop(stuck)
                for process in ready:
                    self._take(process, None)
            ready += self._go_on(ready.pop())
        for process in self.shown:
            self._tell(process, None)
        return self.found

    def _go_on(self, process: int) -> list[int]:
        """As far as this process can go; who waited for a send of it can go on after that."""
        log, freed = self.causality.logs[process], []
        while (place := self.next[process]) < len(log):
            if log.marks[place]:
                self._take(process, None)
                self.sent[process][place] = self._clock(process)
                freed += self.waiting.pop((process, place), [])
                continue
            send = self.causality.sent(log.message(place))
            clock = self.sent[send[0]][send[1]] if send else None
            if send and clock is None:
                self.waiting.setdefault(send, []).append(process)
                break
            self._take(process, clock)
        return freed

    def _take(self, process: int, learnt: Clock | None) -> None:
        position = self.causality.logs[process].positions[self.next[process]]
        self._tell(process, position)
        if learnt is not None:
            known = self._clock(process)
            joined = tuple(map(max, known, learnt))
            self.now[process] = known if joined == known else joined
        self._tell(process, position + 1)
        self.next[process] += 1

    def _tell(self, process: int, limit: int | None) -> None:
        """Stamp what is shown of this process before a position."""
        events = self.shown.get(process, [])
        while events and self.told[process] < len(events):
            event = events[self.told[process]]
            if limit is not None and event.position >= limit:
                return
            self.told[process] += 1
            clock = list(self._clock(process))
            clock[self.column[process]] = self.told[process]
            self.now[process] = self.found[process, event.position] = tuple(clock)

    def _clock(self, process: int) -> Clock:
        return self.now.get(process) or (0,) * len(self.column)


def _hosts(job: Job, processes: list[int]) -> dict[int, str]:
    """Names without blanks, each of them once."""
    names = {process: re.sub(r"\s+", "_", job.who(process)) for process in processes}
    twice = len(set(names.values())) < len(names)
    return {process: f"p{process}" for process in processes} if twice else names


SHIVIZ = Exporter(
    "shiviz",
    "a log with vector clocks",
    write,
    note=f"ShiViz reads it with the parser {PARSER}",
)
