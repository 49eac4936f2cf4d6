"""A huge run judged with some of its messages set apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from ordercast.pipeline.huge.apart import set_apart
from ordercast.pipeline.huge.aside import Aside
from ordercast.pipeline.huge.asking import Asking
from ordercast.pipeline.huge.compared import Compared
from ordercast.pipeline.huge.cycles import Cycle, cycle_of, two_of
from ordercast.pipeline.huge.found import Asked, Found, Knots, Name
from ordercast.pipeline.huge.knowledge import Followed, Knowledge
from ordercast.pipeline.huge.listing import Broken, Sought, broken, pick
from ordercast.pipeline.huge.orders import causal_order, fifo_order
from ordercast.pipeline.huge.segments import Segment
from ordercast.pipeline.huge.sightings import Sighting, has_some, sight
from ordercast.pipeline.huge.spans import Spans, union
from ordercast.pipeline.huge.tally import TOTAL, WINDOWED, Tally, Window, windows
from ordercast.pipeline.huge.ties import Tied, check_span, tie
from ordercast.pipeline.huge.window import judge_window, own_sequence

__all__ = ["Attempt", "Each", "Job", "Knotted", "Split", "dealt"]

T = TypeVar("T")
R = TypeVar("R")


class Each(Protocol):
    def __call__(self, function: Callable[[T], R], those: Sequence[T], kind: type[R], /) -> list[R]:
        """The function's results, which are few and small, each from a task of its own."""


@dataclass(frozen=True)
class Job:
    members: int
    properties: Collection[str]
    each: Each
    tasks: int
    """How many there should be at a time."""
    complete: bool
    """The log has no holes."""


@dataclass(frozen=True)
class Knotted:
    """What no one order fits, in the whole run."""

    many: int = 0
    cycle: Cycle = field(default_factory=list)
    """The shortest."""


@dataclass
class Split:
    """All that was found."""

    tally: Tally
    aside: Aside | None
    windows: list[Found]
    complete: bool
    """Its log has no holes."""
    fifo: Broken = field(default_factory=Broken)
    causal: Broken = field(default_factory=Broken)
    total: Knotted = field(default_factory=Knotted)
    synchronous: Knotted = field(default_factory=Knotted)


def dealt(those: Sequence[T], tasks: int) -> list[Sequence[T]]:
    """Few tasks: one costs more to start than a row group to look at."""
    step = max(1, -(-len(those) // tasks))
    return [those[i : i + step] for i in range(0, len(those), step)]


def _neighbours(many: int, lanes: int) -> list[int]:
    """In which order to do them, so that each of so many workers mostly goes on with the one after
    the one that it has just done."""
    step = -(-many // lanes)
    return sorted(range(many), key=lambda one: (one % step, one // step))


def _corrected(segment: Segment, seen: Sighting | None) -> Segment:
    return segment if seen is None else msgspec.structs.replace(segment, known=seen.known)


class Attempt:
    """With some messages set apart."""

    def __init__(self, job: Job, logs: Sequence[Sequence[Segment]], more: Sequence[Spans]) -> None:
        """`more` are numbers, by origin, that must be set apart as well."""
        self.complete = job.complete
        self.properties, self.each, self.tasks = job.properties, job.each, job.tasks
        self.apart, names = set_apart(logs, more)
        sightings = self._sight(logs) if names else [{} for _ in logs]
        corrected = [
            [_corrected(one, seen.get(i)) for i, one in enumerate(log)]
            for log, seen in zip(logs, sightings, strict=True)
        ]
        self.tally = Tally.of(corrected, self.apart)
        self.aside = Aside.of(self.tally, names, sightings) if names else None
        self.windows: list[Window] = []
        self.windowed: list[Found] = []

    def _sight(self, logs: Sequence[Sequence[Segment]]) -> list[dict[int, Sighting]]:
        apart = self.apart
        those = [
            (p, i, one)
            for p, log in enumerate(logs)
            for i, one in enumerate(log)
            if has_some(one, apart)
        ]

        def look(part: Sequence[tuple[int, int, Segment]]) -> list[Sighting]:
            return list(sight([one for _, _, one in part], apart))

        seen = self.each(look, dealt(those, self.tasks), list[Sighting])
        found: list[dict[int, Sighting]] = [{} for _ in logs]
        for (p, i, _), one in zip(those, (one for part in seen for one in part), strict=True):
            found[p][i] = one
        return found

    def lacking(self) -> list[Spans]:
        """Judges all windows; returns the numbers, by origin, of messages that must be set apart as
        well."""
        excess = self.aside.excess() if self.aside is not None else []
        if any(excess) or not any(name in self.properties for name in WINDOWED):
            return self._numbers(excess)
        lanes = max(self.tasks // 2, 1)
        self.windows = list(windows(self.tally, lanes, self.properties))
        asked = self._asked()
        work = list(zip(self.windows, asked, strict=True))
        apart, properties, complete = self.apart, self.properties, self.complete

        def judge(one: tuple[Window, Asked | None]) -> Found:
            return judge_window(one[0], apart, properties, one[1], complete=complete)

        order = _neighbours(len(work), lanes)
        told = dict(zip(order, self.each(judge, [work[w] for w in order], Found), strict=True))
        self.windowed = [told[w] for w in range(len(work))]
        missing = [one.missing for one in self.windowed if one.missing]
        everywhere = zip(*missing, strict=True)
        return self._numbers([union(span for one in those for span in one) for those in everywhere])

    def has_seen_all(self) -> bool:
        """Was each row in some window?"""
        seen = {
            (part.piece.file, part.piece.groups, part.begin)
            for window in self.windows
            for stretch in window.stretches
            for part in stretch.parts
        }
        return len(seen) == sum(len(log.segments) for log in self.tally.logs)

    def _numbers(self, places: list[Spans]) -> list[Spans]:
        """A stretch of places may have others in between that are set apart already."""
        number = self.apart.number
        return [
            [(number(o, first), number(o, last)) for first, last in spans]
            for o, spans in enumerate(places)
        ]

    def _asked(self) -> Sequence[Asked | None]:
        if self.aside is None:
            return [None] * len(self.windows)
        self.knowledge = Knowledge(self.aside, self.windows)
        asking = Asking(self.aside, self.tally, self.windows, complete=self.complete)
        return asking.all(self.properties, self.knowledge)

    def found(self) -> Split:
        found = Split(self.tally, self.aside, self.windowed, self.complete)
        if self.aside is None:
            found.total = self._knotted([one.total for one in self.windowed], None)
            found.synchronous = self._knotted([one.synchronous for one in self.windowed], None)
            return found
        if "fifo" in self.properties:
            found.fifo = broken(
                fifo_order(self.aside, complete=self.complete), self.tally, self._pick
            )
        if "causal" in self.properties:
            self.knowledge.learn({w: dict(one.known) for w, one in enumerate(self.windowed)})
            self.knowledge.follow(self._follow)
            order = causal_order(self.aside, self.knowledge, complete=self.complete)
            found.causal = broken(order, self.tally, self._pick)
        if any(name in self.properties for name in TOTAL):
            compared = Compared(self.aside, self.tally, with_sends=False)
            found.total = self._knotted([one.total for one in self.windowed], compared)
        if "synchronous" in self.properties:
            compared = Compared(self.aside, self.tally, with_sends=True)
            found.synchronous = self._knotted([one.synchronous for one in self.windowed], compared)
        return found

    def _pick(self, those: Sequence[Sought]) -> list[list[tuple[int, int, int]]]:
        apart = self.apart
        return self.each(lambda one: pick(one, apart), those, list[tuple[int, int, int]])

    def _follow(self, asked: dict[int, list[tuple[int, list[int]]]]) -> Followed:
        apart = self.apart
        work = [(self.windows[w], Asked(known=those)) for w, those in asked.items()]

        def judge(one: tuple[Window, Asked]) -> Found:
            return judge_window(one[0], apart, (), one[1])

        told = self.each(judge, work, Found)
        return {w: dict(one.known) for w, one in zip(asked, told, strict=True)}

    def _knotted(self, those: list[Knots], compared: Compared | None) -> Knotted:
        pairs = [one.pair for one in those if one.pair is not None]
        regular = min(pairs, key=lambda pair: pair.m, default=None)
        if compared is None:
            return Knotted(sum(one.many for one in those), two_of(self.apart, regular))
        tied = tie(compared, those)
        if tied.knots == 0:
            return Knotted()
        cycle = two_of(self.apart, regular, compared)
        if not cycle:
            check_span(tied)
            cycle = cycle_of(compared, tied, self.apart, self._between(tied, those))
        return Knotted(tied.knots, cycle)

    def _between(self, tied: Tied, those: list[Knots]) -> list[Name]:
        """The regular messages that cycles may go through, in the order of the reference. As no two
        messages contradict each other, each of them is a knot by itself."""
        apart, work, start = self.apart, [], 0
        for window, knots in zip(self.windows, those, strict=True):
            for _, span in tied.groups:
                if span is not None and span[0] < start + knots.ended and span[1] >= start:
                    work.append((window, span[0] - start, span[1] - start))
            start += knots.ended

        def look(one: tuple[Window, int, int]) -> list[Name]:
            window, first, last = one
            return own_sequence(window, apart)[max(first, 0) : last + 1]

        return [name for part in self.each(look, work, list[Name]) for name in part]
