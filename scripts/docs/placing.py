"""Finds a spot for each small text: on its own arrow, and on nothing else if there is room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

__all__ = ["Box", "Placer", "Point", "Segment"]

Point = tuple[float, float]
Segment = tuple[Point, Point]

SAMPLES = 40
FRACTIONS = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72, 0.21, 0.79)
AIR = 8.0
"""Between one text and the next."""
CROWDED = 100.0
CROSSED = 6.0


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def around(cls, centre: Point, width: float, height: float) -> Box:
        x, y = centre
        return cls(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    def overlaps(self, other: Box) -> bool:
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.bottom <= other.top or other.bottom <= self.top)

    def holds(self, point: Point) -> bool:
        return self.left < point[0] < self.right and self.top < point[1] < self.bottom


class Placer:
    """Texts are placed one after the other; each keeps clear of what is there already."""

    def __init__(self, taken: Iterable[Box], lines: Sequence[Segment], room: Box) -> None:
        self.taken = list(taken)
        self.lines = lines
        self.room = room

    def on(self, line: Segment, width: float, height: float) -> Point:
        """The best middle of a text on an arrow."""
        (x, y), (to_x, to_y) = line
        spots = [(x + part * (to_x - x), y + part * (to_y - y)) for part in FRACTIONS]
        return self._best(spots, width, height, own=line)

    def near(self, point: Point, width: float, height: float) -> Point:
        """The best middle of a text above or below a point."""
        aside = (0.0, width / 2, -width / 2)
        spots = [(point[0] + dx, point[1] + dy) for dy, dx in product((-13.0, 14.0), aside)]
        return self._best(spots, width, height, own=None)

    def _best(
        self, spots: Sequence[Point], width: float, height: float, *, own: Segment | None
    ) -> Point:
        boxes = [Box.around(spot, width, height) for spot in spots]
        costs = [self._cost(box, own) + rank for rank, box in enumerate(boxes)]
        best = costs.index(min(costs))
        self.taken.append(Box.around(spots[best], width + AIR, height + AIR))
        return spots[best]

    def _cost(self, box: Box, own: Segment | None) -> float:
        crossed = sum(_crosses(line, box) for line in self.lines if line != own)
        crowded = sum(box.overlaps(other) for other in self.taken)
        outside = box.left < self.room.left or box.right > self.room.right
        return CROSSED * crossed + CROWDED * (crowded + 3 * outside)


def _crosses(line: Segment, box: Box) -> bool:
    (x, y), (to_x, to_y) = line
    parts = (step / SAMPLES for step in range(SAMPLES + 1))
    return any(box.holds((x + part * (to_x - x), y + part * (to_y - y))) for part in parts)
