"""A part of a run as a space-time diagram: one lane per process, time to the right.

Every mark, arrow and bar names its message and process in data attributes, so that a script
or a style can find all that belongs to one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from ordercast.report.glyphs import arrow_path, leaving_path, mark_shapes, stub_path
from ordercast.report.hints import arrow_hint, hold_hint, mark_hint
from ordercast.report.history import Id, name_of
from ordercast.report.lanes import BAR_HEIGHT, lane_name
from ordercast.report.layout import Layout, build_layout
from ordercast.report.measures import (
    LABEL_SIDE,
    RADIUS,
    STUB,
    bar_texts,
    bar_width,
    note_text,
    note_width,
)
from ordercast.report.parts import Part
from ordercast.report.scene import Arrow, Scene, build_scene
from ordercast.report.spacing import focus_spot
from ordercast.report.svg import element, number, points
from ordercast.report.words import count, message_text
from ordercast.trace import Trace

__all__ = ["COLOURS", "draw", "draw_scene"]

COLOURS = 8
"""Origins share a colour beyond this; labels tell them apart."""
RING = 8.0
DENSE = 100
"""With more arrows than this, they step back behind the marks."""


def draw(trace: Trace, part: Part, *, name: str, title: str, width: float = 1130.0) -> Markup:
    """A box that scrolls: the diagram, and over it the process names, which stay in sight.

    `name` must be unique on the page: it is the prefix of the ids inside."""
    scene = build_scene(trace, part)
    return draw_scene(scene, build_layout(scene, width=width), name=name, title=title)


def draw_scene(scene: Scene, layout: Layout, *, name: str, title: str) -> Markup:
    size = f"0 0 {number(layout.width)} {number(layout.height)}"
    diagram = element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", _description(scene, layout), id=f"{name}-desc"),
        element("g", *_grid(layout), class_="axis"),
        element("g", *_lines(scene, layout), class_="lanes"),
        element("g", *_holds(scene, layout), class_="holds"),
        element("g", *_arrows(scene, layout), class_="arrows"),
        element("g", *_marks(scene, layout), class_="marks"),
        element("g", *_labels(scene, layout), class_="labels"),
        element("g", *_focus(scene, layout), class_="focus"),
        element("g", *_names(scene, layout), class_="names"),
        xmlns="http://www.w3.org/2000/svg",
        class_="diagram dense" if len(scene.arrows) > DENSE else "diagram",
        viewBox=size,
        width=layout.width,
        height=layout.height,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )
    names = element(
        "svg",
        element("rect", width=layout.names_width, height=layout.height, class_="backdrop"),
        *_names(scene, layout),
        xmlns="http://www.w3.org/2000/svg",
        class_="names",
        width=layout.names_width,
        height=layout.height,
        aria_hidden="true",
    )
    return element(
        "div", diagram, names, class_="scroll", tabindex="0", role="region", aria_label=title
    )


def colour(origin: int) -> str:
    return f"o{origin % COLOURS}"


def _description(scene: Scene, layout: Layout) -> str:
    deliveries = sum(mark.has("deliver") for mark in scene.marks)
    sends = sum(mark.kind == "send" for mark in scene.marks)
    held = count(len(scene.holds), "message was held", "messages were held")
    text = (
        f"A space-time diagram of {count(len(scene.part.processes), 'process', 'processes')}: "
        f"{count(sends, 'send')}, {count(deliveries, 'delivery', 'deliveries')}; {held}."
    )
    focus = scene.part.focus
    if focus is not None and focus_spot(scene, layout.xs) is not None:
        place = name_of(scene.trace, focus.process)
        text += f" Marked: {message_text(focus.message)} at {place}, {focus.note}."
    return text


def _grid(layout: Layout) -> Iterator[Markup]:
    bottom = layout.height - 6.0
    for tick in layout.axis.ticks:
        yield element("path", d=points((tick.x, 24.0), (tick.x, bottom)), class_="grid")
        yield element("text", tick.text, x=tick.x, y=16.0, class_="tick")
    for cut in layout.axis.cuts:
        zigzag = points((cut.x - 6, 28.0), (cut.x - 2, 22.0), (cut.x + 2, 28.0), (cut.x + 6, 22.0))
        yield element(
            "g",
            element("title", f"a pause of {cut.text}, drawn shorter than it was"),
            element("path", d=points((cut.x, 30.0), (cut.x, bottom)), class_="cut"),
            element("path", d=zigzag, class_="zigzag"),
            class_="pause",
        )


def _names(scene: Scene, layout: Layout) -> Iterator[Markup]:
    for process, lane in layout.lanes.items():
        short, index = lane_name(scene.trace, process)
        yield element(
            "g",
            element("title", name_of(scene.trace, process)),
            element("rect", x=8, y=lane.y - 4, width=8, height=8, rx=2, class_="swatch"),
            element(
                "text",
                element("tspan", short),
                element("tspan", index, dx=6, class_="index") if index else "",
                x=22,
                y=lane.y + 4,
            ),
            class_=f"name {colour(process)}",
            data_process=str(process),
        )


def _lines(scene: Scene, layout: Layout) -> Iterator[Markup]:
    for process, lane in layout.lanes.items():
        for span in lane.spans:
            path = points((span.left, lane.y), (span.right, lane.y))
            yield element("path", d=path, class_=f"line {span.state}", data_process=str(process))


def _holds(scene: Scene, layout: Layout) -> Iterator[Markup]:
    for hold, bar in zip(scene.holds, layout.bars, strict=True):
        lane = layout.lanes[hold.process]
        top = lane.bar_top(bar.track)
        classes = ["hold", hold.fate, colour(hold.message[0])]
        if hold.message[0] == hold.process:
            classes.append("itself")
        legs = [bar.left, bar.right] if hold.fate == "delivered" else [bar.left]
        yield element(
            "g",
            element("title", hold_hint(scene, hold)),
            *(element("path", d=points((x, lane.y), (x, top)), class_="leg") for x in legs),
            element(
                "rect",
                x=bar.left,
                y=top,
                width=bar.right - bar.left,
                height=BAR_HEIGHT,
                rx=3,
                class_="bar",
            ),
            class_=" ".join(classes),
            **_data(hold.message, hold.process),
        )


def _arrows(scene: Scene, layout: Layout) -> Iterator[Markup]:
    focus = scene.part.focus
    for arrow in scene.arrows:
        classes = ["arrow", arrow.fate, colour(arrow.message[0])]
        if focus and (focus.message, focus.process) == (arrow.message, arrow.process):
            classes.append("at-fault")
        yield element(
            "g",
            element("title", arrow_hint(scene, arrow)),
            *_arrow_shapes(arrow, layout),
            class_=" ".join(classes),
            **_data(arrow.message, arrow.process),
        )


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


def _marks(scene: Scene, layout: Layout) -> Iterator[Markup]:
    waits = {hold.end: hold.wait_us for hold in scene.holds if hold.fate == "delivered"}
    for index, mark in enumerate(scene.marks):
        x, y = layout.xs[index], layout.y(mark.process)
        classes = ["mark", mark.kind, *(["again"] if mark.again else [])]
        if mark.message is not None:
            classes.append(colour(mark.message[0]))
        yield element(
            "g",
            element("title", mark_hint(scene, mark, wait_us=waits.get(index))),
            element("circle", cx=x, cy=y, r=9, class_="hit"),
            *mark_shapes(mark, x, y, RADIUS),
            class_=" ".join(classes),
            data_position=str(mark.events[0].position),
            **_data(mark.message, mark.process),
        )


def _labels(scene: Scene, layout: Layout) -> Iterator[Markup]:
    for mark, x in zip(scene.marks, layout.xs, strict=True):
        if not mark.label:
            continue
        is_send = mark.kind == "send"
        yield element(
            "text",
            mark.label,
            x=x - LABEL_SIDE if is_send else x + LABEL_SIDE,
            y=layout.y(mark.process) - 10,
            class_=" ".join(["label", mark.kind, colour(mark.message[0]) if mark.message else ""]),
            text_anchor="end" if is_send else "start",
            **_data(mark.message, mark.process),
        )
    for hold, bar in zip(scene.holds, layout.bars, strict=True):
        short, long = bar_texts(hold)
        fits = bar_width(long) <= bar.right - bar.left
        yield element(
            "text",
            long if fits else short,
            x=bar.left + 5,
            y=layout.lanes[hold.process].bar_top(bar.track) + BAR_HEIGHT - 3.2,
            class_=f"label held {colour(hold.message[0])}",
            **_data(hold.message, hold.process),
        )


def _focus(scene: Scene, layout: Layout) -> Iterator[Markup]:
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
    if focus.event is not None:
        yield element("circle", cx=spot, cy=lane.y, r=RING, class_="ring")
        edge += RING
    yield element("path", d=points((spot, edge), (spot, top)), class_="leader")
    yield element("rect", x=left, y=top, width=width, height=18, rx=9, class_="pill")
    yield element("text", f"✗ {note_text(focus)}", x=left + 9, y=top + 13, class_="remark")


def _data(message: Id | None, process: int) -> dict[str, str]:
    known = {} if message is None else {"data_message": message_text(message)}
    return known | {"data_process": str(process)}
