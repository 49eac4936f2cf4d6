"""What the figures say: ratios, and whether the goals are met."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.pipeline.goals import Goal
from benchmarks.streaming.measure import Speed
from benchmarks.streaming.subjects import EMPTY, NOTHING, OURS

__all__ = ["goals", "rate"]

FLAT = 1.25
"""What noise may add to a cost that should not grow."""


def rate(speeds: Sequence[Speed], name: str, subject: str) -> float | None:
    found = [one.rows_per_s for one in speeds if (one.stream.name, one.subject) == (name, subject)]
    return max(found, default=None)


def goals(speeds: Sequence[Speed]) -> list[Goal]:
    """On n = 4, 10 % out of order, unless a goal says otherwise."""
    middle = "g100-n4-10%"
    wanted = [
        _least(f"at least half of an {EMPTY}", speeds, middle, EMPTY, 0.5),
        _least("within 3× of no operator", speeds, middle, NOTHING, 1 / 3),
        _flat("flat from 100 to 10,000 groups", speeds, middle, "g10000-n4-10%"),
        _flat("flat from 1 to 100 held a group", speeds, f"{middle}-held1", f"{middle}-held100"),
    ]
    return [goal for goal in wanted if goal is not None]


def _least(what: str, speeds: Sequence[Speed], name: str, other: str, least: float) -> Goal | None:
    ours, theirs = rate(speeds, name, OURS), rate(speeds, name, other)
    if ours is None or theirs is None:
        return None
    return Goal(what, f"{ours / theirs:.2f}×", name, ours / theirs >= least)


def _flat(what: str, speeds: Sequence[Speed], less: str, more: str) -> Goal | None:
    before, after = rate(speeds, less, OURS), rate(speeds, more, OURS)
    if before is None or after is None:
        return None
    grown = before / after
    return Goal(what, f"{grown:.2f}× the cost a row", f"{less} → {more}", grown <= FLAT)
