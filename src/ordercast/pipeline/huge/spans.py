"""Sets of whole numbers as stretches of neighbours: sorted, apart from each other, and few."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Span", "Spans", "both", "each", "in_order", "size", "union", "without"]

Span = tuple[int, int]
"""From the first to the last."""
Spans = list[Span]


def union(those: Iterable[Span]) -> Spans:
    found: Spans = []
    for first, last in sorted(those):
        if last < first:
            continue
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def without(those: Spans, others: Spans) -> Spans:
    """What is in those and not in the others."""
    found: Spans = []
    for begin, last in those:
        first = begin
        at = bisect_left(others, (first, first))
        for low, high in others[max(at - 1, 0) :]:
            if low > last:
                break
            if high < first:
                continue
            if first < low:
                found.append((first, low - 1))
            first = high + 1
        if first <= last:
            found.append((first, last))
    return found


def both(those: Spans, others: Spans) -> Spans:
    """What is in both. It takes longer for those than for others."""
    return without(those, without(those, others))


def size(those: Iterable[Span]) -> int:
    return sum(last - first + 1 for first, last in those)


def each(those: Iterable[Span]) -> Iterator[int]:
    for first, last in those:
        yield from range(first, last + 1)


def in_order(those: Sequence[Span]) -> Spans:
    """Of stretches that are apart from each other, in any order, the most numbers that rise all
    along. Of two ways as good as each other, the one that keeps what is ahead of the rest: a
    message that comes too late says less than one that comes too early."""
    # Ways to end so far, by their last numbers; the sizes rise with them.
    lasts: list[int] = []
    ends: list[int] = []
    best: list[int] = []
    previous: list[int] = []
    for i, (first, last) in enumerate(those):
        at = bisect_left(lasts, first)
        before = ends[at - 1] if at else -1
        best.append(last - first + 1 + (best[before] if at else 0))
        previous.append(before)
        at = bisect_left(lasts, last)
        if at and best[ends[at - 1]] > best[i]:
            continue
        worse = at
        while worse < len(ends) and best[ends[worse]] < best[i]:
            worse += 1
        lasts[at:worse] = [last]
        ends[at:worse] = [i]
    found: Spans = []
    end = ends[-1] if ends else -1
    while end >= 0:
        found.append(those[end])
        end = previous[end]
    return found[::-1]
