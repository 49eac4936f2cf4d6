"""Deliveries as reads show them: what a process has not shown before, it has delivered since.

A read tells what is there, not in which order it came. Those that are new together are taken in the
order in which they were broadcast: a cause is broadcast before its effect, so that no order is
called broken that may have held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ordercast.trace.importers.base import Record, Report, Where

__all__ = ["Sightings"]

LOST = "a value is gone from a later read: what was delivered once counts as delivered"


class Sightings:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._order: dict[str, int] = {}
        self._seen: dict[tuple[str, str], Counter[str]] = {}

    def broadcast(self, message: str) -> None:
        self._order.setdefault(message, len(self._order))

    def read(
        self, run: str, process: str, values: Sequence[str], where: Where, time_us: int | None
    ) -> Iterator[Record]:
        """The deliveries that a read shows for the first time."""
        seen = self._seen.setdefault((run, process), Counter())
        shown = Counter(values)
        if any(message not in shown for message in seen):
            self._report.note(LOST)
        new = [(message, count - seen[message]) for message, count in shown.items()]
        last = len(self._order)
        for message, times in sorted(new, key=lambda one: (self._order.get(one[0], last), one[0])):
            for _ in range(times):
                yield Record(run, process, "deliver", where, message, time_us=time_us)
        seen |= shown
