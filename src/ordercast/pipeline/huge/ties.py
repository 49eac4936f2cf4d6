"""Knots and cycles, where messages are set apart.

Without them, the knots of a run lie one after the other along the order of the reference; one that
is in no knot counts as one here. A message that is set apart comes after all knots up to the last
that has something before it, and before all from the first that has something after it: so a graph
of these messages and of those few knots has the cycles that the whole run has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ordercast.pipeline.huge.aside import NOWHERE
from ordercast.pipeline.huge.compared import Compared
from ordercast.pipeline.huge.found import Knots, Name
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.kernels.cycles import components

__all__ = ["SPAN_MOST", "Tied", "check_span", "places_of", "points", "tie"]

SPAN_MOST = 1 << 16
"""How many messages a cycle is searched among that no two messages show."""


def places_of(compared: Compared) -> set[Name]:
    """The regular messages whose knots must be known."""
    return {
        (o, int(place))
        for those in (compared.before, compared.after)
        for x, o in np.argwhere((those > 0) & (those < NOWHERE)).tolist()
        for place in [those[x, o]]
    }


@dataclass(frozen=True)
class Tied:
    """in: the whole run"""

    knots: int
    groups: list[tuple[list[int], tuple[int, int] | None]]
    """The knots that have messages set apart: which, and from which knot of the regular ones to
    which, counted along the reference's order."""


def tie(compared: Compared, windows: Sequence[Knots]) -> Tied:
    starts = list(accumulate((one.ended for one in windows), initial=0))
    knots = list(accumulate((one.many for one in windows), initial=0))
    ordinal: dict[Name, int] = {}
    upto: dict[int, tuple[int, int]] = {}
    """By ordinal, how many real knots are before it, and with it."""
    for w, one in enumerate(windows):
        for place in one.places:
            at = starts[w] + place.ordinal
            before = knots[w] + place.before
            ordinal[place.name] = at
            upto[at] = (before, before + place.tied)
    nodes = sorted(set(ordinal.values()))
    node_of = {at: i for i, at in enumerate(nodes)}
    chains = [list(range(len(nodes))), *_around(compared, ordinal, node_of)]
    entries = np.array([one for chain in chains for one in chain], np.int32)
    begin = np.cumsum([0, *map(len, chains)])
    size = len(nodes) + len(compared.first)
    group = np.zeros(size, np.int32)
    many = components(entries, begin, group, np.empty_like(group))
    total, groups = knots[-1], []
    for number in range(1, many + 1):
        mine = np.flatnonzero(group == number)
        apart = (mine[mine >= len(nodes)] - len(nodes)).tolist()
        inside = [nodes[i] for i in mine[mine < len(nodes)].tolist()]
        span = (inside[0], inside[-1]) if inside else None
        if span is not None:
            total -= upto[span[1]][1] - upto[span[0]][0]
        groups.append((apart, span))
    return Tied(total + many, groups)


def _around(
    compared: Compared, ordinal: dict[Name, int], node_of: dict[int, int]
) -> Iterator[list[int]]:
    """The chains of the graph: what is right before and after each message set apart, and for each
    process what of them it has, in its order."""
    first = len(node_of)
    for x in np.flatnonzero(compared.present).tolist():
        before = [
            ordinal[o, place] for o, place in enumerate(compared.before[x].tolist()) if place > 0
        ]
        after = [
            ordinal[o, place]
            for o, place in enumerate(compared.after[x].tolist())
            if place < NOWHERE
        ]
        if before:
            yield [node_of[max(before)], first + x]
        if after:
            yield [first + x, node_of[min(after)]]
    for p in range(compared.aside.members):
        yield [first + x for _, x in points(compared, p, range(len(compared.first)))]


def points(compared: Compared, p: int, those: Iterable[int]) -> list[tuple[int, int]]:
    """When a process had which messages set apart, once or twice each, in order."""
    found = set()
    for x in those:
        if compared.last[x, p] >= 0:
            found |= {(int(compared.first[x, p]), x), (int(compared.last[x, p]), x)}
    return sorted(found)


def check_span(tied: Tied) -> None:
    """Raises `Unhealthy` if there is too much to search through."""
    many = sum(last - first + 1 for _, span in tied.groups if span for first, last in [span])
    if many > SPAN_MOST:
        raise Unhealthy("has a cycle of messages that lie too far apart")
