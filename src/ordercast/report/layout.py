"""Where everything goes: pure numbers, in CSS pixels. Time runs to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ordercast.report.axis import Axis, Instant, build_axis, x_at
from ordercast.report.lanes import Bar, Lane, build_bars, build_lanes, lane_name
from ordercast.report.partitions import partitions_of
from ordercast.report.scene import Scene
from ordercast.report.spacing import TAIL, place, tail

__all__ = ["Layout", "build_layout"]

NAME_CHARACTER = 7.4
NAME_SIDE = 36.0
EDGE = 6.0
INDENT = 16.0
"""From the names to the first mark or label."""


@dataclass(frozen=True, slots=True)
class Shade:
    """A partition, from where to where."""

    left: float
    right: float
    text: str


@dataclass(frozen=True, slots=True)
class Layout:
    width: float
    height: float
    names_width: float
    xs: tuple[float, ...]
    """For each mark of the scene."""
    bars: tuple[Bar, ...]
    """For each hold of the scene."""
    lanes: dict[int, Lane]
    axis: Axis
    shades: tuple[Shade, ...] = ()

    def y(self, process: int) -> float:
        return self.lanes[process].y


def build_layout(scene: Scene, *, width: float) -> Layout:
    """`width` is what the page has room for; a crowded diagram becomes wider."""
    names_width = _names_width(scene)
    start = names_width + INDENT
    spread = place(scene, width - start - TAIL)
    excess = max(spread, default=0.0) + tail(scene, spread) + start + EDGE - width
    if excess > 0:  # What follows the last mark is only known once the marks are placed.
        spread = place(scene, width - start - TAIL - excess)
    xs = tuple(round(start + x, 2) for x in spread)
    end = round(max(max(xs, default=start) + tail(scene, spread), start + 160.0), 2)
    bars = build_bars(scene, xs, end)
    lanes = build_lanes(scene, xs, bars, start=names_width + 6.0, end=end)
    bottom = max((lane.bottom for lane in lanes.values()), default=40.0)
    instants = _instants(scene, xs)
    axis = build_axis(instants, zero_us=scene.zero_us) if scene.timed else Axis()
    shades = tuple(_shades(scene, instants)) if scene.timed else ()
    return Layout(end + EDGE, bottom + 4.0, names_width, xs, bars, lanes, axis, shades)


def _shades(scene: Scene, instants: Sequence[Instant]) -> Iterator[Shade]:
    for cut in partitions_of(scene.trace.manifest):
        if instants[0].time_us < cut.end_us and cut.start_us < instants[-1].time_us:
            left, right = (x_at(instants, time_us) for time_us in (cut.start_us, cut.end_us))
            yield Shade(left, right, f"partition {cut.sides}")


def _instants(scene: Scene, xs: Sequence[float]) -> list[Instant]:
    instants: list[Instant] = []
    for mark, x in zip(scene.marks, xs, strict=True):
        if instants and instants[-1].time_us == mark.time_us:
            last = instants[-1]
            instants[-1] = Instant(last.time_us, min(last.left, x), max(last.right, x))
        else:
            instants.append(Instant(mark.time_us, x, x))
    return instants


def _names_width(scene: Scene) -> float:
    names = [lane_name(scene.trace, process) for process in scene.part.processes]
    longest = max((len(short) + len(index) + bool(index) for short, index in names), default=2)
    return round(NAME_SIDE + NAME_CHARACTER * longest, 1)
