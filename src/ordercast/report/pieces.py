"""The pieces of a diagram, layer by layer from the back to the front, each with its extent.

Every mark, arrow and bar names its message and process in data attributes, so that the page's
script can find all that belongs to one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple
from typing import NamedTuple

from markupsafe import Markup

from ordercast.report.glyphs import arrow_path, leaving_path, mark_shapes, stub_path
from ordercast.report.hints import arrow_hint, hold_hint, mark_hint
from ordercast.report.history import Id
from ordercast.report.lanes import BAR_HEIGHT
from ordercast.report.layout import Layout
from ordercast.report.measures import (
    LABEL_SIDE,
    RADIUS,
    STUB,
    bar_texts,
    bar_width,
    extent,
    note_text,
    note_width,
)
from ordercast.report.scene import Arrow, Scene
from ordercast.report.spacing import focus_spot
from ordercast.report.svg import element, points
from ordercast.report.words import message_text

__all__ = ["COLOURS", "LAYERS", "Piece", "colour"]

COLOURS = 8
"""Origins share a colour beyond this; labels tell them apart."""
RING = 8.0
REACH = 9.0
"""How far from a mark's middle the pointer still finds it."""
TICK_SIDE = 34.0


class Piece(NamedTuple):
    left: float
    right: float
    shape: Markup


def colour(origin: int) -> str:
    return f"o{origin % COLOURS}"


def _grid(scene: Scene, layout: Layout) -> Iterator[Piece]:
    bottom = layout.height - 6.0
    for left, right, text in map(astuple, layout.shades):
        shade = element(
            "g",
            element("title", f"{text}: nothing passes between the sides"),
            element("rect", x=left, y=22, width=right - left, height=bottom - 22, class_="shade"),
            element("text", text, x=left + 4, y=33, class_="parted"),
            class_="partition",
        )
        yield Piece(left, right, shade)
    for tick in layout.axis.ticks:
        line = element("path", d=points((tick.x, 24.0), (tick.x, bottom)), class_="grid")
        yield Piece(tick.x, tick.x, line)
        text = element("text", tick.text, x=tick.x, y=16.0, class_="tick")
        yield Piece(tick.x - TICK_SIDE, tick.x + TICK_SIDE, text)
    for cut in layout.axis.cuts:
        zigzag = points((cut.x - 6, 28.0), (cut.x - 2, 22.0), (cut.x + 2, 28.0), (cut.x + 6, 22.0))
        pause = element(
            "g",
            element("title", f"a pause of {cut.text}, drawn shorter than it was"),
            element("path", d=points((cut.x, 30.0), (cut.x, bottom)), class_="cut"),
            element("path", d=zigzag, class_="zigzag"),
            class_="pause",
        )
        yield Piece(cut.x - 6, cut.x + 6, pause)


def _lines(scene: Scene, layout: Layout) -> Iterator[Piece]:
    for process, lane in layout.lanes.items():
        for span in lane.spans:
            path = points((span.left, lane.y), (span.right, lane.y))
            line = element("path", d=path, class_=f"line {span.state}", data_process=str(process))
            yield Piece(span.left, span.right, line)


def _holds(scene: Scene, layout: Layout) -> Iterator[Piece]:
    for hold, bar in zip(scene.holds, layout.bars, strict=True):
        lane = layout.lanes[hold.process]
        top = lane.bar_top(bar.track)
        classes = ["hold", hold.fate, colour(hold.message[0])]
        if hold.message[0] == hold.process:
            classes.append("itself")
        legs = [bar.left, bar.right] if hold.fate == "delivered" else [bar.left]
        if lane.crowded:
            legs = []
        shape = element(
            "g",
            element("title", hold_hint(scene, hold)),
            *(element("path", d=points((x, lane.y), (x, top)), class_="leg") for x in legs),
            element(
                "rect",
                x=bar.left,
                y=top,
                width=bar.right - bar.left,
                height=lane.bar_height,
                rx=1 if lane.crowded else 3,
                class_="bar",
            ),
            class_=" ".join(classes),
            **_data(hold.message, hold.process),
        )
        yield Piece(bar.left, bar.right, shape)


def _arrows(scene: Scene, layout: Layout) -> Iterator[Piece]:
    focus = scene.part.focus
    for arrow in scene.arrows:
        classes = ["arrow", arrow.fate, colour(arrow.message[0])]
        if focus and (focus.message, focus.process) == (arrow.message, arrow.process):
            classes.append("at-fault")
        shape = element(
            "g",
            element("title", arrow_hint(scene, arrow)),
            *_arrow_shapes(arrow, layout),
            class_=" ".join(classes),
            **_data(arrow.message, arrow.process),
        )
        ends = [layout.xs[end] for end in (arrow.start, arrow.end) if end is not None]
        missing = arrow.start is None or arrow.end is None
        stub = STUB + 4.0 if missing else 0.0
        yield Piece(min(ends) - stub, max(ends) + stub, shape)


def _arrow_shapes(arrow: Arrow, layout: Layout) -> Iterator[Markup]:
    y = layout.y(arrow.process)
    if arrow.end is None:
        assert arrow.start is not None
        start = (layout.xs[arrow.start], layout.y(arrow.message[0]))
        if arrow.fate == "beyond":
            yield element("path", d=leaving_path(start, y, RADIUS))
            return
        line, tip = stub_path(start, y, STUB, RADIUS)
        yield element("path", d=line)
        yield element("circle", cx=tip[0], cy=tip[1], r=3, class_="open")
        return
    x = layout.xs[arrow.end]
    if arrow.start is None:
        yield element("path", d=arrow_path((x - 18, y - 26), (x, y), RADIUS))
        return
    line = arrow_path((layout.xs[arrow.start], layout.y(arrow.message[0])), (x, y), RADIUS)
    yield element("path", d=line, class_="hit")
    yield element("path", d=line)


def _marks(scene: Scene, layout: Layout) -> Iterator[Piece]:
    waits = {hold.end: hold.wait_us for hold in scene.holds if hold.fate == "delivered"}
    for index, mark in enumerate(scene.marks):
        x, y = layout.xs[index], layout.y(mark.process)
        classes = ["mark", mark.kind, *(["again"] if mark.again else [])]
        if mark.message is not None:
            classes.append(colour(mark.message[0]))
        shape = element(
            "g",
            element("title", mark_hint(scene, mark, wait_us=waits.get(index))),
            element("circle", cx=x, cy=y, r=REACH, class_="hit"),
            *mark_shapes(mark, x, y, RADIUS),
            class_=" ".join(classes),
            data_position=str(mark.events[0].position),
            **_data(mark.message, mark.process),
        )
        yield Piece(x - REACH, x + REACH, shape)


def _labels(scene: Scene, layout: Layout) -> Iterator[Piece]:
    for mark, x in zip(scene.marks, layout.xs, strict=True):
        if not mark.label:
            continue
        is_send = mark.kind == "send"
        text = element(
            "text",
            mark.label,
            x=x - LABEL_SIDE if is_send else x + LABEL_SIDE,
            y=layout.y(mark.process) - 10,
            class_=" ".join(["label", mark.kind, colour(mark.message[0]) if mark.message else ""]),
            text_anchor="end" if is_send else "start",
            **_data(mark.message, mark.process),
        )
        left, right = extent(mark)
        yield Piece(x - left, x + right, text)
    for hold, bar in zip(scene.holds, layout.bars, strict=True):
        if layout.lanes[hold.process].crowded:
            continue
        short, long = bar_texts(hold)
        fits = bar_width(long) <= bar.right - bar.left
        text = element(
            "text",
            long if fits else short,
            x=bar.left + 5,
            y=layout.lanes[hold.process].bar_top(bar.track) + BAR_HEIGHT - 3.2,
            class_=f"label held {colour(hold.message[0])}",
            **_data(hold.message, hold.process),
        )
        yield Piece(bar.left, bar.left + bar_width(long if fits else short), text)


def _focus(scene: Scene, layout: Layout) -> Iterator[Piece]:
    """The ring around the offence, and a note below it."""
    focus = scene.part.focus
    spot = focus_spot(scene, layout.xs)
    if focus is None or spot is None:
        return
    lane = layout.lanes[focus.process]
    width = note_width(focus)
    # Messages come from the left: to the right, the note does not cover the one it is about.
    left = min(spot - 7, layout.width - width - 3)
    top = lane.bar_top(lane.tracks) + 3
    edge = lane.y
    shapes = []
    if focus.event is not None:
        shapes.append(element("circle", cx=spot, cy=lane.y, r=RING, class_="ring"))
        edge += RING
    shapes += [
        element("path", d=points((spot, edge), (spot, top)), class_="leader"),
        element("rect", x=left, y=top, width=width, height=18, rx=9, class_="pill"),
        element("text", f"✗ {note_text(focus)}", x=left + 9, y=top + 13, class_="remark"),
    ]
    yield Piece(min(left, spot - RING), left + width, Markup("").join(shapes))


def _data(message: Id | None, process: int) -> dict[str, str]:
    known = {} if message is None else {"data_message": message_text(message)}
    return known | {"data_process": str(process)}


LAYERS: dict[str, Callable[[Scene, Layout], Iterator[Piece]]] = {
    "axis": _grid,
    "lanes": _lines,
    "holds": _holds,
    "arrows": _arrows,
    "marks": _marks,
    "labels": _labels,
    "focus": _focus,
}
