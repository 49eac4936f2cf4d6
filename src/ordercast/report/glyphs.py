"""The shapes of marks and arrows around a point."""

from __future__ import annotations

from collections.abc import Iterator
from math import hypot

from markupsafe import Markup

from ordercast.report.scene import Mark
from ordercast.report.svg import element, points

__all__ = ["arrow_path", "leaving_path", "mark_shapes", "stub_path"]

Point = tuple[float, float]

HEAD_LENGTH = 7.0
HEAD_WIDTH = 2.8
SHORT_OF_LANE = 24.0
LEAVING = 16.0


def mark_shapes(mark: Mark, x: float, y: float, radius: float) -> Iterator[Markup]:
    if mark.kind == "send":
        yield element("circle", cx=x, cy=y, r=radius)
        if mark.has("deliver"):
            yield element("circle", cx=x, cy=y, r=1.7, class_="own")
    elif mark.kind == "deliver":
        yield element("circle", cx=x, cy=y, r=radius)
        if mark.again:
            yield element("circle", cx=x, cy=y, r=radius + 3, class_="echo")
    elif mark.kind == "arrival":
        yield element("circle", cx=x, cy=y, r=2.6)
    elif mark.kind == "copy":
        yield element("circle", cx=x, cy=y, r=2)
    elif mark.kind == "crash":
        falling, rising = ((x - 6, y - 6), (x + 6, y + 6)), ((x - 6, y + 6), (x + 6, y - 6))
        yield element("path", d=f"{points(*falling)} {points(*rising)}", class_="cross")
    elif mark.kind == "recover":
        yield element("path", d=points((x - 3, y - 6), (x + 6, y), (x - 3, y + 6)) + " Z")
    else:
        yield element("path", d=points((x, y - 7), (x, y + 7)), class_="gate")


def arrow_path(start: Point, end: Point, radius: float) -> str:
    """From the edge of one mark to the edge of the other, with its head, in one path."""
    dx, dy = _unit(start, end)
    tail = (start[0] + dx * radius, start[1] + dy * radius)
    tip = (end[0] - dx * (radius + 0.8), end[1] - dy * (radius + 0.8))
    neck = (tip[0] - dx * HEAD_LENGTH, tip[1] - dy * HEAD_LENGTH)
    left = (neck[0] - dy * HEAD_WIDTH, neck[1] + dx * HEAD_WIDTH)
    right = (neck[0] + dy * HEAD_WIDTH, neck[1] - dx * HEAD_WIDTH)
    return f"{points(tail, neck)} {points(tip, left, right)} Z"


def stub_path(start: Point, lane_y: float, reach: float, radius: float) -> tuple[str, Point]:
    """Towards a lane and not quite there; also where it ends."""
    down = 1.0 if lane_y > start[1] else -1.0
    tip = (start[0] + reach, lane_y - down * SHORT_OF_LANE)
    dx, dy = _unit(start, tip)
    tail = (start[0] + dx * radius, start[1] + dy * radius)
    return points(tail, (tip[0] - dx * 3, tip[1] - dy * 3)), tip


def leaving_path(start: Point, lane_y: float, radius: float) -> str:
    """A short line towards a lane: the message is on its way, and its arrival is not drawn."""
    down = 1.0 if lane_y > start[1] else -1.0
    dx, dy = _unit((0.0, 0.0), (LEAVING, down * LEAVING))
    tail = (start[0] + dx * radius, start[1] + dy * radius)
    return points(tail, (start[0] + LEAVING, start[1] + down * LEAVING))


def _unit(start: Point, end: Point) -> Point:
    length = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    return (end[0] - start[0]) / length, (end[1] - start[1]) / length
