"""The events of a few processes as one sequence in which every cause comes first."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from ordercast.trace.event import MESSAGE_KINDS, Event
from ordercast.trace.runs import Id

__all__ = ["STEP_NS", "Times", "by_process", "moments", "sequence"]

STEP_NS = 1_000

Times = dict[tuple[int, int], int]
"""When each event was, in nanoseconds, by process and position."""


def by_process(events: Iterable[Event]) -> dict[int, list[Event]]:
    """Each process's events, in its own order."""
    logs: dict[int, list[Event]] = {}
    for event in sorted(events, key=lambda event: (event.process, event.position)):
        logs.setdefault(event.process, []).append(event)
    return logs


def sequence(events: Iterable[Event]) -> list[Event]:
    """By time, as far as each process's own order allows it and no message comes before its send.
    Where the log says that one does, it stays as it is."""
    return _Merge(by_process(events)).run()


def moments(events: list[Event]) -> Times:
    """The log's own times, or if one is missing, times counted along the messages. Each event of a
    process gets a nanosecond of its own, so that its order can be told from the times."""
    known = {
        (event.process, event.position): event.time_us * 1_000
        for event in events
        if event.time_us is not None
    }
    wanted = known if len(known) == len(events) else _counted(events)
    times: Times = {}
    for process, log in by_process(events).items():
        last = -1
        for event in log:
            last = max(wanted[process, event.position], last + 1)
            times[process, event.position] = last
    return times


def _counted(events: list[Event]) -> Times:
    times: Times = {}
    last: dict[int, int] = {}
    sent: dict[Id, int] = {}
    for event in sequence(events):
        cause = 0
        if event.kind in ("receive", "deliver"):
            cause = sent.get(event.message, 0)
        last[event.process] = max(last.get(event.process, 0), cause) + STEP_NS
        times[event.process, event.position] = last[event.process]
        if event.kind == "send":
            sent[event.message] = last[event.process]
    return times


class _Merge:
    def __init__(self, logs: dict[int, list[Event]]) -> None:
        self.logs = logs
        self.next = dict.fromkeys(logs, 0)
        self.unsent = {e.message for log in logs.values() for e in log if e.kind == "send"}
        self.waiting: dict[Id, list[int]] = {}
        self.ready: list[tuple[int, int]] = []

    def run(self) -> list[Event]:
        done: list[Event] = []
        for process in self.logs:
            self._offer(process)
        while self.ready or self.waiting:
            if not self.ready:
                self._release(min(self.waiting, key=lambda message: self.waiting[message]))
            _, process = heappop(self.ready)
            event = self.logs[process][self.next[process]]
            done.append(event)
            self.next[process] += 1
            if event.kind == "send":
                self.unsent.discard(event.message)
                self._release(event.message)
            self._offer(process)
        return done

    def _offer(self, process: int) -> None:
        if self.next[process] == len(self.logs[process]):
            return
        event = self.logs[process][self.next[process]]
        if event.kind in MESSAGE_KINDS and event.kind != "send" and event.message in self.unsent:
            self.waiting.setdefault(event.message, []).append(process)
        else:
            self._ready(process)

    def _release(self, message: Id) -> None:
        for process in self.waiting.pop(message, ()):
            self._ready(process)

    def _ready(self, process: int) -> None:
        event = self.logs[process][self.next[process]]
        when = self.next[process] if event.time_us is None else event.time_us
        heappush(self.ready, (when, process))
