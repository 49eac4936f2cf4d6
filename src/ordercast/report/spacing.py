"""How far to the right each mark stands.

Distances follow the clock, stretched wherever marks or labels would collide, so of two marks
the later one is always further right. A long time in which nothing happens is cut short.
Marks at the same time stand above each other, unless one follows from the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ordercast.report.axis import shortened
from ordercast.report.measures import STUB, bar_texts, bar_width, extent, note_width
from ordercast.report.scene import Mark, Scene

__all__ = ["TAIL", "focus_spot", "place", "tail"]

LABEL_GAP = 5.0
INSTANT_GAP = 7.0
"""Between marks of different times, whichever lane they are on."""
FLIGHT = 18.0
"""From a send to an arrival at the same time: without clocks, every arrow has this slant."""
TAIL = 44.0
"""After the last mark or label."""
STRETCH = 3.0
"""How far a drawing without times is pulled apart at most, to fill the room it has."""
LOOSE = 1.35
"""A crowded diagram may be this much wider than it must be, so that time still shows."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """What bounds a mark from the left; all of it known before any scale is chosen."""

    marks: tuple[Mark, ...]
    steps_us: list[int]
    extents: list[tuple[float, float]]
    after: dict[int, list[tuple[int, float]]]
    """For a mark, the marks that it must be right of, and how far."""

    def spread(self, scale: float) -> list[float]:
        """Left to right, each mark as early as its time, its lane and its message allow."""
        lane_ends: dict[int, float] = {}
        xs: list[float] = []
        base, furthest = 0.0, 0.0
        for index, mark in enumerate(self.marks):
            if index and mark.time_us != self.marks[index - 1].time_us:
                base = max(base + scale * self.steps_us[index], furthest + INSTANT_GAP)
            left, right = self.extents[index]
            x = max(base, lane_ends.get(mark.process, 0.0) + left)
            for earlier, distance in self.after.get(index, ()):
                x = max(x, xs[earlier] + distance)
            lane_ends[mark.process] = x + right + LABEL_GAP
            furthest = max(furthest, x)
            xs.append(x)
        return xs


def place(scene: Scene, room: float) -> list[float]:
    """The most generous scale that fits the room, found by halving: more scale, more width."""
    if not scene.marks:
        return []
    rules = _Rules(
        marks=scene.marks,
        steps_us=shortened([mark.time_us for mark in scene.marks]),
        extents=[extent(mark) for mark in scene.marks],
        after=_after(scene),
    )
    room = max(room, LOOSE * max(rules.spread(0.0)))
    low, high = 0.0, room
    for _ in range(60):
        middle = (low + high) / 2
        if max(rules.spread(middle)) > room:
            high = middle
        else:
            low = middle
    xs = rules.spread(low)
    if any(rules.steps_us):
        return xs
    stretch = min(room / max(*xs, 1.0), STRETCH)
    return [x * stretch for x in xs]


def tail(scene: Scene, xs: Sequence[float]) -> float:
    """Room after the last mark for labels, notes, and bars and arrows that have no end."""
    last = max(xs, default=0.0)
    reach = [x + extent(mark)[1] + TAIL for x, mark in zip(xs, scene.marks, strict=True)]
    reach += [
        xs[hold.start] + bar_width(bar_texts(hold)[1]) for hold in scene.holds if hold.end is None
    ]
    spot = focus_spot(scene, xs)
    if scene.part.focus is not None and spot is not None:
        reach.append(spot + note_width(scene.part.focus))
    return max(max(reach, default=0.0) - last + 1.0, TAIL)


def focus_spot(scene: Scene, xs: Sequence[float]) -> float | None:
    """How far right the offence is: at its delivery; for a missing one where the message waits,
    or just after its send. None if the offence is not in this part."""
    focus = scene.part.focus
    if focus is None or focus.process not in scene.part.processes:
        return None
    about = [index for index, mark in enumerate(scene.marks) if mark.message == focus.message]
    here = [index for index in about if scene.marks[index].process == focus.process]
    if focus.event is not None:
        here = [index for index in here if focus.event in scene.marks[index].events]
        return xs[here[0]] if here else None
    if here:
        return xs[here[0]]
    return xs[about[0]] + STUB if about and scene.marks[about[0]].kind == "send" else None


def _after(scene: Scene) -> dict[int, list[tuple[int, float]]]:
    """Arrivals are right of their sends; a bar is as long as its label."""
    after: dict[int, list[tuple[int, float]]] = {}
    for arrow in scene.arrows:
        if arrow.start is not None and arrow.end is not None and arrow.start < arrow.end:
            after.setdefault(arrow.end, []).append((arrow.start, FLIGHT))
    for hold in scene.holds:
        if hold.end is not None:
            width = bar_width(bar_texts(hold)[0])
            after.setdefault(hold.end, []).append((hold.start, width))
    return after
