"""Small plots as SVG, drawn here: lines over an axis, and ranges by process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from ordercast.report.overlap import Curve, overlap_of
from ordercast.report.pieces import COLOURS
from ordercast.report.scales import Scale, ticks
from ordercast.report.svg import element, number, points

__all__ = ["Bar", "Line", "Plot", "Range", "bar_plot", "line_plot", "range_plot"]

Words = Callable[[float], str]

WIDTH = 360.0
HEIGHT = 210.0
TOP = 12.0
BOTTOM = 34.0
LEFT = 58.0
RIGHT = WIDTH - 20.0
LABEL = 6.2
"""The width of one character of a label (10.5px monospace)."""
LABEL_APART = 11.5
CROWDED = 10.0
"""If the largest value is so many times the smallest, the scale is logarithmic."""
ROW = 22.0
NAME_MAX = 14


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    hue: int


@dataclass(frozen=True, slots=True)
class Range:
    """A spread of values: half of them up to `p50`, and so on."""

    name: str
    hue: int
    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    hue: int
    value: float


@dataclass(frozen=True, slots=True)
class Plot:
    title: str
    drawing: Markup
    note: str = ""
    """What it leaves out, or how to read it."""


def line_plot(
    lines: Sequence[Line], *, title: str, x_words: Words, y_words: Words, steps: bool = False
) -> Markup:
    """`steps` for values that hold until the next one."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    side = max((len(line.name) for line in lines), default=0) * LABEL + 14.0
    across = Scale(min(xs), max(xs), LEFT, RIGHT)
    crowded = not steps and min(ys) > 0 and max(ys) > CROWDED * min(ys)
    up = Scale(min(ys) if crowded else 0.0, max(ys) or 1.0, HEIGHT - BOTTOM, TOP, log=crowded)
    shapes = [*_vertical(up, y_words), *_horizontal(across, x_words, sorted(set(xs)))]
    curves = [[(across(x), up(y)) for x, y in line.points] for line in lines]
    for line, placed in zip(lines, curves, strict=True):
        overlap = overlap_of(placed, [] if steps else curves)
        path = _stairs(placed) if steps else points(*placed)
        dots = [] if steps else list(_dots(line, placed, y_words, overlap.radius))
        shapes.append(
            element(
                "g",
                element("title", line.name),
                element(
                    "path",
                    d=path,
                    class_="curve",
                    stroke_dasharray=overlap.dashes,
                    stroke_dashoffset=overlap.offset,
                ),
                *dots,
                class_=_hue(line.hue),
            )
        )
    shapes += _names(
        lines, [(across(line.points[-1][0]), up(line.points[-1][1])) for line in lines], hold=steps
    )
    return _svg(shapes, WIDTH + side, HEIGHT, title)


def range_plot(ranges: Sequence[Range], *, title: str, words: Words) -> Markup:
    scale = Scale(0.0, max(one.max for one in ranges) or 1.0, _room(ranges), WIDTH - 60.0)
    bottom = TOP + ROW * len(ranges)
    shapes: list[Markup] = list(_floor(scale, words, bottom))
    for index, one in enumerate(ranges):
        y = TOP + ROW * (index + 0.5)
        shares = f"90 % within {words(one.p90)}, 99 % within {words(one.p99)}"
        told = f"{one.name}: half within {words(one.p50)}, {shares}, at most {words(one.max)}"
        shapes.append(
            element(
                "g",
                element("title", told),
                element("text", _short(one.name), x=0, y=y + 4, class_="row"),
                element(
                    "path", d=points((scale(one.p50), y), (scale(one.max), y)), class_="whisker"
                ),
                element("path", d=points((scale(one.p50), y), (scale(one.p90), y)), class_="most"),
                element(
                    "path",
                    d=points((scale(one.p99), y - 5), (scale(one.p99), y + 5)),
                    class_="whisker",
                ),
                element("circle", cx=scale(one.p50), cy=y, r=4, class_="dot"),
                element("text", words(one.p99), x=scale(one.max) + 7, y=y + 4),
                class_=_hue(one.hue),
            )
        )
    return _svg(shapes, WIDTH, bottom + BOTTOM - 10, title)


def bar_plot(bars: Sequence[Bar], *, title: str, words: Words) -> Markup:
    scale = Scale(0.0, max(bar.value for bar in bars) or 1.0, _room(bars), WIDTH - 60.0)
    shapes: list[Markup] = []
    for index, bar in enumerate(bars):
        y = TOP + ROW * (index + 0.5)
        width = max(scale(bar.value) - scale.left, 1.0)
        shapes.append(
            element(
                "g",
                element("title", f"{bar.name}: {words(bar.value)}"),
                element("text", _short(bar.name), x=0, y=y + 4, class_="row"),
                element("rect", x=scale.left, y=y - 6, width=width, height=12, rx=2, class_="most"),
                element("text", words(bar.value), x=scale.left + width + 7, y=y + 4),
                class_=_hue(bar.hue),
            )
        )
    return _svg(shapes, WIDTH, TOP + ROW * len(bars) + 4, title)


def _dots(line: Line, curve: Curve, words: Words, radius: float) -> Iterator[Markup]:
    for (x, y), (_, value) in zip(curve, line.points, strict=True):
        told = element("title", f"{line.name}: {words(value)}")
        yield element("circle", told, cx=x, cy=y, r=radius, class_="dot")


def _stairs(placed: Sequence[tuple[float, float]]) -> str:
    path = [placed[0]]
    for (_, before), (x, y) in pairwise(placed):
        path += [(x, before), (x, y)]
    return points(*path)


def _vertical(scale: Scale, words: Words) -> Iterator[Markup]:
    for value in scale.ticks:
        y = scale(value)
        yield element("path", d=points((LEFT, y), (WIDTH - 8.0, y)), class_="grid")
        yield element("text", words(value), x=LEFT - 6, y=y + 3.5, class_="end")


def _horizontal(scale: Scale, words: Words, known: Sequence[float]) -> Iterator[Markup]:
    """Few values are all named; of many, round ones."""
    values = (
        known if len(known) <= 6 else [scale.low + tick for tick in ticks(scale.high - scale.low)]
    )
    for value in values:
        x = scale(value)
        yield element(
            "path", d=points((x, HEIGHT - BOTTOM), (x, HEIGHT - BOTTOM + 4)), class_="grid"
        )
        yield element("text", words(value), x=x, y=HEIGHT - BOTTOM + 17, class_="middle")


def _floor(scale: Scale, words: Words, bottom: float) -> Iterator[Markup]:
    for value in ticks(scale.high, wished=3):
        x = scale(value)
        yield element("path", d=points((x, TOP), (x, bottom + 4)), class_="grid")
        yield element("text", words(value), x=x, y=bottom + 17, class_="middle")


def _names(
    lines: Sequence[Line], ends: Sequence[tuple[float, float]], *, hold: bool
) -> list[Markup]:
    """To the right of each line's end, moved apart where they would collide, with a thread back. If
    values do not hold on, one from afar would be taken for a piece of the line."""
    order = sorted(range(len(lines)), key=lambda index: ends[index][1])
    heights: list[float] = []
    for index in order:
        lowest = heights[-1] + LABEL_APART if heights else TOP
        heights.append(max(ends[index][1], lowest))
    limit = HEIGHT - BOTTOM
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], limit)
        limit = heights[place] - LABEL_APART
    found = []
    for index, at in zip(order, heights, strict=True):
        line = lines[index]
        shapes = [element("text", line.name, x=WIDTH, y=at + 3.5, class_="own")]
        if hold or ends[index][0] >= RIGHT:
            shapes.append(element("path", d=points(ends[index], (WIDTH - 2, at)), class_="thread"))
        found.append(element("g", *shapes, class_=_hue(line.hue)))
    return found


def _room(rows: Sequence[Range] | Sequence[Bar]) -> float:
    return max(len(_short(row.name)) for row in rows) * LABEL + 14.0


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX else name[: NAME_MAX - 1] + "…"


def _hue(hue: int) -> str:
    """Beyond the palette, lines are dashed."""
    return f"o{hue % COLOURS}" + (" dashed" if hue >= COLOURS else "")


def _svg(shapes: Sequence[Markup], width: float, height: float, title: str) -> Markup:
    return element(
        "svg",
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        class_="plot",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=title,
    )
