"""The time axis: round times where the marks put them, and cuts where nothing happened."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TypeVar

from ordercast.report.words import duration, instant

__all__ = ["Axis", "Cut", "Instant", "Tick", "build_axis", "shortened", "x_at"]

T = TypeVar("T")

IDLE = 12
"""A pause this many times as long as the usual one is idle,"""
IDLE_SHARE = 10
"""and cut short if it takes more than this part of the whole."""
TICK_APART = 62.0
TICK_WISHED = 110.0


@dataclass(frozen=True, slots=True)
class Instant:
    """A time at which something happens, and where its marks begin and end."""

    time_us: int
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Cut:
    """A pause that is drawn shorter than it was."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    ticks: tuple[Tick, ...] = ()
    cuts: tuple[Cut, ...] = ()


def shortened(times_us: Sequence[int]) -> list[int]:
    """The pause before each time, cut to `IDLE` times the usual one where it is idle."""
    limit, cut = _idle_us(times_us)
    steps = [0, *(later - earlier for earlier, later in _neighbours(times_us))]
    return [cut if step > limit else step for step in steps]


def build_axis(instants: Sequence[Instant], *, zero_us: int) -> Axis:
    if not instants:
        return Axis()
    limit, _ = _idle_us([instant.time_us for instant in instants])
    cuts = [
        Cut(round((earlier.right + later.left) / 2, 2), duration(later.time_us - earlier.time_us))
        for earlier, later in _neighbours(instants)
        if later.time_us - earlier.time_us > limit
    ]
    return Axis(tuple(_ticks(instants, zero_us, limit)), tuple(cuts))


def x_at(instants: Sequence[Instant], time_us: int) -> float:
    """Where a time is that may be before, after or between all marks."""
    at = bisect_right([instant.time_us for instant in instants], time_us) - 1
    return _x(instants, at, time_us) if at >= 0 else instants[0].left


def _ticks(instants: Sequence[Instant], zero_us: int, limit: int) -> list[Tick]:
    first, last = instants[0], instants[-1]
    step = _round_step((last.time_us - first.time_us) * TICK_WISHED / _width(instants))
    times = [instant.time_us for instant in instants]
    ticks: list[Tick] = []
    # A jump from instant to instant: a long pause may hold more round times than anyone draws.
    time_us = zero_us + -(-(first.time_us - zero_us) // step) * step
    while time_us <= last.time_us:
        at = bisect_right(times, time_us) - 1
        x = _x(instants, at, time_us)
        idle = at + 1 < len(times) and times[at + 1] - times[at] > limit
        if not (idle and time_us > times[at]) and (not ticks or x - ticks[-1].x >= TICK_APART):
            ticks.append(
                Tick(round(x, 2), instant(time_us - zero_us, step) if time_us > zero_us else "0")
            )
        beyond = times[at + 1] if idle else time_us + step
        time_us = max(time_us + step, zero_us + -(-(beyond - zero_us) // step) * step)
    return ticks


def _x(instants: Sequence[Instant], at: int, time_us: int) -> float:
    here = instants[at]
    if here.time_us == time_us or at + 1 == len(instants):
        return here.left
    following = instants[at + 1]
    part = (time_us - here.time_us) / (following.time_us - here.time_us)
    return here.right + part * (following.left - here.right)


def _width(instants: Sequence[Instant]) -> float:
    return max(instants[-1].right - instants[0].left, TICK_WISHED)


def _round_step(wished_us: float) -> int:
    """1, 2 or 5 times a power of ten, the next above what is wished."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= wished_us:
                return factor * power
        power *= 10


def _idle_us(times_us: Sequence[int]) -> tuple[int, int]:
    """Beyond which length a pause is cut, and what it is cut to."""
    pauses = [later - earlier for earlier, later in _neighbours(times_us) if later > earlier]
    if not pauses:
        return 0, 0
    cut = int(IDLE * median(pauses))
    return max(cut, sum(pauses) // IDLE_SHARE), cut


def _neighbours(items: Sequence[T]) -> list[tuple[T, T]]:
    return list(pairwise(items))
