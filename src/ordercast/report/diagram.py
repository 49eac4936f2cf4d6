"""A part of a run as a space-time diagram: one lane per process, time to the right."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from ordercast.report.history import name_of
from ordercast.report.lanes import lane_name
from ordercast.report.layout import Layout, build_layout
from ordercast.report.parts import Part
from ordercast.report.pieces import COLOURS, LAYERS, Piece, colour
from ordercast.report.scene import Scene, build_scene
from ordercast.report.spacing import focus_spot
from ordercast.report.strips import edges_of, sleeping
from ordercast.report.svg import element, number
from ordercast.report.words import count, message_text
from ordercast.trace import Trace

__all__ = ["COLOURS", "colour", "draw", "draw_scene"]

DENSE = 100
"""With more arrows than this, they step back behind the marks."""
SVG = "http://www.w3.org/2000/svg"
BEYOND = "Without scripts, only the beginning of this diagram is shown."


def draw(trace: Trace, part: Part, *, name: str, title: str, width: float = 1130.0) -> Markup:
    """A box that scrolls: the diagram, and over it the process names, which stay in sight.

    `name` must be unique on the page: it is the prefix of the ids inside."""
    scene = build_scene(trace, part)
    return draw_scene(scene, build_layout(scene, width=width), name=name, title=title)


def draw_scene(
    scene: Scene, layout: Layout, *, name: str, title: str, **data: str | None
) -> Markup:
    """`data_log` is the id of what the page's script knows about the run."""
    layers = {layer: list(pieces(scene, layout)) for layer, pieces in LAYERS.items()}
    edges = edges_of(layout.width, layers)
    first = _strip(scene, layout, layers, edges[1], name=name, title=title)
    size = f"width:{number(edges[1])}px;height:{number(layout.height)}px"
    rest = Markup("")
    if len(edges) > 2:
        rest = element(
            "script", sleeping(edges, layers), type="text/plain", class_="rest"
        ) + element("p", BEYOND, class_="note beyond")
    names = element(
        "svg",
        element("rect", width=layout.names_width, height=layout.height, class_="backdrop"),
        element("g", *_names(scene, layout), id=f"{name}-names"),
        xmlns=SVG,
        class_="names",
        viewBox=f"0 0 {number(layout.names_width)} {number(layout.height)}",
        width=layout.names_width,
        height=layout.height,
        aria_hidden="true",
    )
    box = element(
        "div",
        element("div", element("div", first, class_="strip", style=size), class_="strips"),
        names,
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=title,
        **data,
    )
    return box + rest


def _strip(
    scene: Scene,
    layout: Layout,
    layers: dict[str, list[Piece]],
    right: float,
    *,
    name: str,
    title: str,
) -> Markup:
    """All of a diagram, or the first strip of a long one."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", _description(scene, layout), id=f"{name}-desc"),
        *(
            element("g", *(p.shape for p in pieces if p.left <= right), class_=layer)
            for layer, pieces in layers.items()
        ),
        element("g", *_names(scene, layout), class_="names"),
        xmlns=SVG,
        class_="diagram dense" if len(scene.arrows) > DENSE else "diagram",
        viewBox=f"0 0 {number(right)} {number(layout.height)}",
        width=right,
        height=layout.height,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


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
