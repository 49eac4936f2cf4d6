"""What a member of a live run tells about itself while it works, without being slowed by it.

A sample has a bounded size, is left out while the launcher has not read the last ones, and takes a
small part of the time at most. Of too many messages only every second, fourth, … is told: those
whose numbers are multiples, so that all members tell of the same ones.
"""

from __future__ import annotations

import asyncio
import select
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ordercast.protocols import catalog
from ordercast.runtime.control import Assignment, Moment, Sample
from ordercast.runtime.holds import holds
from ordercast.runtime.node import Node
from ordercast.trace.span_log import SpanLog
from ordercast.trace.spans import Span

__all__ = ["WatchedLog", "keep_reporting", "sample_of"]

PERIOD_S = 0.15
EFFORT = 0.05
"""The part of the time that samples may take."""
MOMENTS_MAX = 240
"""In one sample."""
HOLDS_MAX = 8


class WatchedLog(SpanLog):
    """A log that remembers what was written since somebody last looked, or some of it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._moments: list[Moment] = []
        self._every = 1

    def write(self, spans: Iterable[Span]) -> None:
        spans = list(spans)
        super().write(spans)
        for span in spans:
            self._notice(span)

    def take(self) -> tuple[tuple[Moment, ...], int]:
        """What there is to tell, and of which messages it is: every so manieth."""
        moments, every = tuple(self._moments), self._every
        self._moments = []
        if len(moments) < MOMENTS_MAX // 4 and every > 1:
            self._every //= 2
        return moments, every

    def _notice(self, span: Span) -> None:
        if span.origin is None or span.first is None:
            return
        number = span.first + -span.first % self._every
        while number < span.first + span.count:
            self._moments.append(Moment(span.kind, span.time_us, span.origin, number))
            if len(self._moments) > MOMENTS_MAX:
                self._thin_out()
            number += self._every - number % self._every

    def _thin_out(self) -> None:
        while len(self._moments) > MOMENTS_MAX:
            self._every *= 2
            self._moments = [each for each in self._moments if each.number % self._every == 0]


def sample_of(assignment: Assignment, node: Node, log: WatchedLog, *, finished: bool) -> Sample:
    core = node.core
    moments, every = log.take()
    held = sorted(holds(core, node.names), key=lambda hold: hold.since_us)
    return Sample(
        sent=core.sent,
        delivered=core.delivered,
        held=len(held),
        bundles=core.stack.sent,
        stable=core.stack.sent - _unstable(assignment, node),
        finished=finished,
        holds=tuple(held[:HOLDS_MAX]),
        moments=moments,
        every=every,
    )


def _unstable(assignment: Assignment, node: Node) -> int:
    """As `Receipt.stable` has it: how many of one's own bundles no majority is known to hold."""
    lacking = node.core.standing.lacking.values()
    if catalog.uniform(assignment.ordering, assignment.dissemination):
        return sum(bits >> node.me & 1 for bits in lacking)
    one = catalog.ORDERINGS[assignment.ordering].destinations == "one"
    size = 1 if one else assignment.processes
    return sum(size - bits.bit_count() <= size // 2 for bits in lacking)


async def keep_reporting(sample: Callable[[], Sample], say: Callable[[Sample], None]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        if select.select([], [sys.stdout], [], 0)[1]:
            say(sample())
        await asyncio.sleep(max(PERIOD_S, (loop.time() - began) / EFFORT))
