"""A long diagram in strips: only those in sight are drawn on the screen, and a printer puts them
below each other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ordercast.report.pieces import Piece
from ordercast.report.svg import number

__all__ = ["edges_of", "sleeping"]

WIDTH = 1100.0
LONGEST = 1.5 * WIDTH
"""A diagram up to this wide stays in one piece."""
SLACK = 80.0
STEP = 4.0


def edges_of(width: float, layers: Mapping[str, Sequence[Piece]]) -> list[float]:
    """Where strips begin and end: where the fewest words are in the way."""
    if width <= LONGEST:
        return [0.0, width]
    return _edges(width, [*layers["marks"], *layers["labels"]])


def sleeping(edges: Sequence[float], layers: Mapping[str, Sequence[Piece]]) -> Markup:
    """What is right of the first strip, as text that the page's script wakes strip by strip: the
    edges, then a line for each piece: its layer, from where to where it reaches, and the piece."""
    lines = ["\t".join(map(number, edges))]
    for layer, pieces in layers.items():
        for left, right, shape in pieces:
            if right >= edges[1]:
                text = shape.replace("\n", " ")
                lines.append(f"{layer}\t{number(left)}\t{number(right)}\t{text}")
    return Markup("\n".join(lines))  # noqa: S704 - the pieces are markup, the rest are numbers


def _edges(width: float, words: Sequence[Piece]) -> list[float]:
    longest = max((piece.right - piece.left for piece in words), default=0.0)
    by_left = sorted(words, key=lambda piece: piece.left)
    lefts = [piece.left for piece in by_left]
    count = round(width / WIDTH)
    edges = [0.0]
    for index in range(1, count):
        middle = width * index / count
        first = bisect_left(lefts, middle - SLACK - longest)
        edges.append(_clearest(middle, by_left[first : bisect_right(lefts, middle + SLACK)]))
    return [*edges, width]


def _clearest(middle: float, words: Sequence[Piece]) -> float:
    """The place near the middle that the fewest words are in the way of."""
    reach = int(SLACK / STEP)
    places = [middle + STEP * step for step in range(-reach, reach + 1)]

    def badness(x: float) -> tuple[int, float]:
        return sum(word.left < x < word.right for word in words), abs(x - middle)

    return min(places, key=badness)
