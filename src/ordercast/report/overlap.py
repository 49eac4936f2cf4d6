"""Lines that lie upon each other: each of them should still be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Curve", "Overlap", "overlap_of"]

Curve = Sequence[tuple[float, float]]
"""The points of a line, in pixels."""

HIDDEN = 2.0
"""Lines that are nowhere further apart look like one."""
TURN = 9.0
DOT = 3.0
RIM = 1.5


@dataclass(frozen=True, slots=True)
class Overlap:
    """How a line is drawn so that it leaves room for those that it would hide."""

    dashes: str | None = None
    """Lines take turns: of each stretch one dash is this one's, the rest is theirs."""
    offset: float | None = None
    radius: float = DOT
    """Of dots upon each other the one drawn first is the largest, so that each shows a rim."""


def overlap_of(curve: Curve, curves: Sequence[Curve]) -> Overlap:
    """`curves` are all lines of the plot in the order in which they are drawn."""
    alike = [other for other in curves if _coincide(curve, other)]
    if len(alike) < 2:
        return Overlap()
    place = next(index for index, other in enumerate(alike) if other is curve)
    others = len(alike) - 1
    return Overlap(f"{TURN:g} {TURN * others:g}", -TURN * place, DOT + RIM * (others - place))


def _coincide(one: Curve, other: Curve) -> bool:
    return len(one) == len(other) and all(
        abs(x - u) < HIDDEN and abs(y - v) < HIDDEN
        for (x, y), (u, v) in zip(one, other, strict=True)
    )
