"""A story as a picture that stands alone: the report's diagram, with the way of every packet.

The report draws a message from its sender to each process, since a trace knows no more. Here the
links were watched, so each copy is drawn from whoever really sent it, and so are packets without
a message.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import hypot
from pathlib import Path

from markupsafe import Markup
from packets import concerns, words
from placing import Box, Placer, Point, Segment
from stories import Flight, Remark, Rest, Story

import ordercast.report
from ordercast.oracle import judge
from ordercast.protocols.messages import message_of
from ordercast.report import slice_for, whole
from ordercast.report.diagram import colour, draw_scene
from ordercast.report.glyphs import arrow_path, stub_path
from ordercast.report.lanes import BAR_HEIGHT
from ordercast.report.layout import Layout, build_layout
from ordercast.report.measures import CHARACTER, LABEL_SIDE, RADIUS, STUB
from ordercast.report.scene import Scene, build_scene
from ordercast.report.svg import element, points
from ordercast.report.words import message_text
from ordercast.trace import Trace
from ordercast.trace.verdicts import Witness

__all__ = ["picture", "witness"]

WIDTH = 880.0
WITNESS_WIDTH = 640.0
WORD_CHARACTER = 6.05
WORD_HEIGHT = 11.0
STYLE = Path(ordercast.report.__file__).parent / "templates" / "style.css"
OWN_STYLE = """
.paper { fill: var(--page); stroke: var(--faint); }
.control path { stroke: var(--c, var(--soft)); fill: var(--c, var(--soft)); opacity: .8; }
.control path { stroke-width: 1; stroke-dasharray: 3 3; }
.control circle { fill: var(--c, var(--soft)); }
.control .open { fill: var(--page); stroke: var(--c, var(--soft)); }
.rest { fill: var(--soft); opacity: .4; }
.broken path { stroke: var(--violated); stroke-width: 3; }
svg .broken .word { fill: var(--violated); font-weight: 700; }
.patch { fill: var(--page); opacity: .85; }
svg .word { font-size: 10px; text-anchor: middle; fill: var(--c, var(--soft)); }
"""


def picture(name: str, story: Story, *, broken: str | None = None) -> str:
    """`broken` is a property whose violation is marked: the offence, or every step of a circle."""
    trace = story.trace
    part = whole(trace)
    circle: list[tuple[Remark, Remark]] = []
    if broken is not None:
        [verdict] = judge(trace, (broken,))
        assert verdict.witness is not None, f"{name}: {broken} holds"
        if broken == "synchronous":
            circle = list(_circle(story, verdict.witness))
        else:
            part = replace(part, focus=slice_for(trace, verdict.witness).focus)
    scene = build_scene(trace, part)
    addressed = [hold for hold in scene.holds if _addressed(scene, *hold.message, hold.process)]
    scene = replace(scene, arrows=(), holds=tuple(addressed))
    layout = build_layout(scene, width=WIDTH)
    svg = _svg(str(draw_scene(scene, layout, name=name, title=story.title)))
    way = _Way(story, scene, layout, talkative=broken is None)
    shapes = element("g", *way.drawn(), *way.circle(circle), class_="arrows")
    return _alone(svg.replace('<g class="arrows"/>', str(shapes), 1), layout)


def witness(name: str, trace: Trace, broken: str) -> str:
    """What the report draws of a violation: just those processes and messages."""
    [verdict] = judge(trace, (broken,))
    assert verdict.witness is not None, f"{name}: {broken} holds"
    scene = build_scene(trace, slice_for(trace, verdict.witness))
    layout = build_layout(scene, width=WITNESS_WIDTH)
    title = verdict.witness.sentence
    return _alone(_svg(str(draw_scene(scene, layout, name=name, title=title))), layout)


def _svg(drawn: str) -> str:
    return drawn[drawn.index("<svg") : drawn.index("</svg>") + len("</svg>")]


def _alone(svg: str, layout: Layout) -> str:
    """A drawing that brings its own paper and colours."""
    frame = element(
        "rect", x=0.5, y=0.5, width=layout.width - 1, height=layout.height - 1, rx=8, class_="paper"
    )
    style = f"<style>{_style(svg)}{OWN_STYLE}</style>"
    return svg.replace("</desc>", f"</desc>{style}{frame}", 1).replace("<g ", "\n<g ") + "\n"


def _circle(story: Story, witness: Witness) -> Iterator[tuple[Remark, Remark]]:
    """Where each message of a crown comes before the next one: the two events at that process."""
    messages = [tuple(map(int, text.split(":"))) for text in witness.messages]
    for m, n in pairwise([*messages, messages[0]]):
        for process in story.trace.members:
            events = [e for e in story.trace.events if e.process == process and e.number]
            times = {e.message: e.time_us or 0 for e in events}
            if m in times and n in times and times[m] < times[n]:
                text = f"{message_text(m)} before {message_text(n)}"
                yield Remark(process, times[m], text), Remark(process, times[n], text)


def _addressed(scene: Scene, origin: int, number: int, process: int) -> bool:
    """A coordinator that passes a message on does not hold it."""
    for event in scene.trace.events:
        if event.kind == "send" and event.message == (origin, number):
            return event.destinations is None or process in event.destinations
    return False


def _style(svg: str) -> str:
    """Those rules of the report's page that this drawing needs, and its colours, light and dark."""
    css = STYLE.read_text()
    used = {name for value in re.findall(r'class="([^"]*)"', svg) for name in value.split()}
    dark = re.search(r"@media \(prefers-color-scheme: dark\) \{.*?\n\}", css, re.DOTALL)
    assert dark is not None
    plain = re.sub(r"@(media|page)[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", css)
    kept = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", plain):
        needed = [s.strip() for s in selectors.split(",") if _applies(s.strip(), used)]
        if needed:
            kept.append(f"{', '.join(needed)} {{ {' '.join(body.split())} }}")
    return "\n".join(["", kept[0], dark.group(), *kept[1:]])


def _applies(selector: str, used: set[str]) -> bool:
    if ":hover" in selector:
        return False
    bare = re.sub(r":not\([^)]*\)", "", selector)
    classes = re.findall(r"\.([\w-]+)", bare)
    tags = set(re.findall(r"(?<![.\w:-])[a-z]\w*", bare))
    if not tags <= {"svg", "text", "path", "circle", "rect", "g"} or "*" in bare:
        return False
    return set(classes) <= used if classes else bare in (":root", "svg text")


class _Way:
    """Everything between the lanes."""

    def __init__(self, story: Story, scene: Scene, layout: Layout, *, talkative: bool) -> None:
        """What packets carry is left out where the picture is about something else."""
        self.story = story
        self.talkative = talkative
        self.scene = scene
        self.layout = layout
        self.instants = self._instants()
        self.times = [time_us for time_us, _, _ in self.instants]
        self.lines = {id(flight): self._line(flight) for flight in story.flights}
        room = Box(layout.names_width, 0.0, layout.width - 2.0, layout.height)
        self.placer = Placer(self._taken(), list(self.lines.values()), room)

    def drawn(self) -> Iterator[Markup]:
        for rest in self.story.rests:
            yield from self._rest(rest)
        shown = [flight for flight in self.story.flights if self._matters(flight)]
        for flight in shown:
            yield self._flight(flight)
        for remark in self.story.remarks:
            spot = self._spot(remark.process, remark.time_us, None)
            at = self.placer.near(spot, *_size(remark.text))
            dot = element("circle", cx=spot[0], cy=spot[1], r=2.2)
            yield element("g", dot, _word(remark.text, at), class_="control")
        for flight in shown:
            text = words(flight.packet)
            if self.talkative and flight.arrived_us is not None and text:
                at = self.placer.on(self.lines[id(flight)], *_size(text))
                yield element("g", _word(text, at), class_=self._class(flight))

    def circle(self, steps: list[tuple[Remark, Remark]]) -> Iterator[Markup]:
        for first, second in steps:
            left, y = self._spot(first.process, first.time_us, None)
            right, _ = self._spot(second.process, second.time_us, None)
            line = element("path", d=points((left + RADIUS, y), (right - RADIUS, y)))
            at = self.placer.near(((left + right) / 2, y), *_size(first.text))
            yield element("g", line, _word(first.text, at), class_="broken")

    def _rest(self, rest: Rest) -> Iterator[Markup]:
        left, y = self._spot(rest.process, rest.since_us, None)
        end_us = self.times[-1] if rest.until_us is None else rest.until_us
        right, _ = self._spot(rest.process, end_us, None)
        width = right - left - 4
        yield element("rect", x=left + 2, y=y - 3.5, width=width, height=7, rx=3, class_="rest")
        at = self.placer.near(((left + right) / 2, y), *_size("passive"))
        yield element("g", _word("passive", at), class_="control")

    def _matters(self, flight: Flight) -> bool:
        """What was sent to the dead shows nothing."""
        return flight.arrived_us is not None or flight.to not in self.story.down

    def _flight(self, flight: Flight) -> Markup:
        message, kind = message_of(flight.packet), self._class(flight)
        start, end = self.lines[id(flight)]
        if flight.arrived_us is None:
            line, tip = stub_path(start, self.layout.y(flight.to), STUB, RADIUS)
            hole = element("circle", cx=tip[0], cy=tip[1], r=3, class_="open")
            return element("g", element("path", d=line), hole, class_=f"{kind} never")
        dots = [
            element("circle", cx=x, cy=y, r=1.6)
            for x, y in (start, end)
            if message is None and not self._is_mark((x, y))
        ]
        path = element("path", d=arrow_path(start, end, RADIUS if message else 3.2))
        return element("g", path, *dots, class_=kind)

    def _class(self, flight: Flight) -> str:
        origin = concerns(flight.packet)
        hue = "" if origin is None else f" {colour(origin)}"
        return f"{'control' if message_of(flight.packet) is None else 'arrow'}{hue}"

    def _line(self, flight: Flight) -> Segment:
        message = message_of(flight.packet)
        key = None if message is None else (message.id.origin, message.id.number)
        start = self._spot(flight.source, flight.departed_us, key)
        if flight.arrived_us is None:
            return start, stub_path(start, self.layout.y(flight.to), STUB, RADIUS)[1]
        return start, self._spot(flight.to, flight.arrived_us, key)

    # Where things are

    def _spot(self, process: int, time_us: int, message: tuple[int, int] | None) -> Point:
        """At the mark that this process makes at that time, if it makes one."""
        here = [
            (mark.message != message, x)
            for mark, x in zip(self.scene.marks, self.layout.xs, strict=True)
            if (mark.process, mark.time_us) == (process, time_us)
        ]
        return min(here)[1] if here else self._x(time_us), self.layout.y(process)

    def _x(self, time_us: int) -> float:
        at = bisect_right(self.times, time_us) - 1
        earlier, _, left = self.instants[max(at, 0)]
        if at + 1 == len(self.instants):
            return left + 14.0 * (time_us - earlier) / 1_000
        later, right, _ = self.instants[at + 1]
        return left + (right - left) * (time_us - earlier) / (later - earlier)

    def _instants(self) -> list[tuple[int, float, float]]:
        """Each time at which there is a mark, with its leftmost and its rightmost one."""
        xs: dict[int, list[float]] = {}
        for mark, x in zip(self.scene.marks, self.layout.xs, strict=True):
            xs.setdefault(mark.time_us, []).append(x)
        return [(time_us, min(row), max(row)) for time_us, row in sorted(xs.items())]

    def _is_mark(self, point: Point) -> bool:
        marks = zip(self.scene.marks, self.layout.xs, strict=True)
        return any(
            hypot(x - point[0], self.layout.y(mark.process) - point[1]) < RADIUS
            for mark, x in marks
        )

    def _taken(self) -> Iterator[Box]:
        layout = self.layout
        for mark, x in zip(self.scene.marks, layout.xs, strict=True):
            y = layout.y(mark.process)
            yield Box.around((x, y), 2 * RADIUS, 2 * RADIUS)
            width = len(mark.label) * CHARACTER
            left = x - LABEL_SIDE - width if mark.kind == "send" else x + LABEL_SIDE
            if width:
                yield Box(left, y - 19, left + width, y - 8)
        for hold, bar in zip(self.scene.holds, layout.bars, strict=True):
            top = layout.lanes[hold.process].bar_top(bar.track)
            yield Box(bar.left, top, bar.right, top + BAR_HEIGHT)
        for lane in layout.lanes.values():
            yield Box(0.0, lane.y - 0.5, layout.width, lane.y + 0.5)


def _size(text: str) -> tuple[float, float]:
    return len(text) * WORD_CHARACTER + 3.0, WORD_HEIGHT


def _word(text: str, at: Point) -> Markup:
    """A text, and behind it a patch of paper that interrupts the arrow."""
    x, y = at
    width, height = _size(text)
    patch = element(
        "rect", x=x - width / 2, y=y - height / 2, width=width, height=height, class_="patch"
    )
    return patch + element("text", text, x=x, y=y + 3.5, class_="word")
