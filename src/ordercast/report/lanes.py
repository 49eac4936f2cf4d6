"""The lanes: one process each, as high as its waits need, alive where its log says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ordercast.report.history import name_of
from ordercast.report.scene import Scene
from ordercast.trace import Trace

__all__ = ["BAR_HEIGHT", "Bar", "Lane", "Span", "build_bars", "build_lanes", "lane_name"]

TOP = 34.0
"""The time axis is above the first lane."""
ABOVE = 26.0
BAR_TOP = 8.0
BAR_HEIGHT = 13.0
TRACK = 15.0
TRACKS_SPACIOUS = 6
"""With more waits at once than this, bars get thin and lose their labels."""
TRACKS_HIGH = 90.0
"""However many wait at once, a lane is no higher: it is as high where nobody waits, too."""
NOTE = 22.0
PITCHES = ((4, 86.0), (8, 74.0), (16, 62.0))
"""Up to so many lanes, so far apart: arrows are easier to follow the steeper they are."""
PITCH_CROWDED = 50.0
NAME_MAX = 22

State = Literal["up", "down", "away"]
_CHANGES: dict[str, State] = {"crash": "down", "recover": "up", "join": "up", "leave": "away"}


@dataclass(frozen=True, slots=True)
class Bar:
    """A wait on a lane: `track` 0 is next to the line, further ones are below it."""

    left: float
    right: float
    track: int


@dataclass(frozen=True, slots=True)
class Span:
    left: float
    right: float
    state: State
    """`down` is between a crash and the recovery that follows."""


@dataclass(frozen=True, slots=True)
class Lane:
    process: int
    y: float
    tracks: int
    spans: tuple[Span, ...]
    top: float
    bottom: float

    @property
    def crowded(self) -> bool:
        return self.tracks > TRACKS_SPACIOUS

    @property
    def bar_height(self) -> float:
        return max(_track_height(self.tracks) - 0.5, 0.6) if self.crowded else BAR_HEIGHT

    def bar_top(self, track: int) -> float:
        return self.y + BAR_TOP + track * _track_height(self.tracks)


def _track_height(tracks: int) -> float:
    return TRACK if tracks <= TRACKS_SPACIOUS else TRACKS_HIGH / tracks


def build_bars(scene: Scene, xs: Sequence[float], end: float) -> tuple[Bar, ...]:
    """Waits at one process that overlap go below each other."""
    spans = [(xs[hold.start], end if hold.end is None else xs[hold.end]) for hold in scene.holds]
    ends: dict[int, list[float]] = {}
    bars: dict[int, Bar] = {}
    for index in sorted(range(len(spans)), key=lambda i: (*spans[i], i)):
        left, right = spans[index]
        used = ends.setdefault(scene.holds[index].process, [])
        track = next((t for t, until in enumerate(used) if until < left), len(used))
        used[track : track + 1] = [right]
        bars[index] = Bar(left, right, track)
    return tuple(bars[index] for index in range(len(spans)))


def build_lanes(
    scene: Scene, xs: Sequence[float], bars: Sequence[Bar], *, start: float, end: float
) -> dict[int, Lane]:
    tracks = dict.fromkeys(scene.part.processes, 0)
    for hold, bar in zip(scene.holds, bars, strict=True):
        tracks[hold.process] = max(tracks[hold.process], bar.track + 1)
    focus = scene.part.focus
    pitch = next((high for most, high in PITCHES if len(tracks) <= most), PITCH_CROWDED)
    lanes: dict[int, Lane] = {}
    top = TOP
    for process, depth in tracks.items():
        note = NOTE if focus is not None and focus.process == process else 0.0
        needed = ABOVE + BAR_TOP + depth * _track_height(depth) + note + 6.0
        height = needed if len(lanes) == len(tracks) - 1 else max(pitch, needed)
        spans = tuple(_spans(scene, xs, process, start, end))
        lanes[process] = Lane(process, top + ABOVE, depth, spans, top, top + height)
        top += height
    return lanes


def lane_name(trace: Trace, process: int) -> tuple[str, str]:
    """A process's name, cut if long, and its index unless the name says it already.

    Messages are called by the index of their sender, so a reader needs both."""
    name = name_of(trace, process)
    short = name if len(name) <= NAME_MAX else name[: NAME_MAX - 1] + "…"
    return short, "" if name == f"p{process}" else f"p{process}"


def _spans(scene: Scene, xs: Sequence[float], process: int, start: float, end: float) -> list[Span]:
    marks = [(m, x) for m, x in zip(scene.marks, xs, strict=True) if m.process == process]
    spans: list[Span] = []
    state: State = "away" if marks and marks[0][0].kind == "join" else "up"
    left = start
    for mark, x in marks:
        change = _CHANGES.get(mark.kind)
        if change is None or change == state:
            continue
        if state != "away":
            spans.append(Span(left, x, state))
        state, left = change, x
    if state == "up":
        spans.append(Span(left, end, state))
    return spans
