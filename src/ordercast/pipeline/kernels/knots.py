"""Knots: the largest sets of messages that all come before each other in the chains."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.cycles import components
from ordercast.pipeline.kernels.index import NEVER
from ordercast.pipeline.kernels.kernel import Ints, part

__all__ = ["knots"]


@part
def knots(entries: Ints, begin: Ints, first: Ints, last: Ints, tangled: int) -> tuple[int, Ints]:
    """How many knots there are, and for each message the number of its knot (0: in none).

    `tangled` is what `entangled` found.
    """
    knot = np.zeros(first.shape[0], np.int32)
    reference = _reference(entries, begin, first)
    if reference >= 0:
        if tangled == 0:
            return 0, knot
        return _knots_along(entries, begin, first, last, reference, knot), knot
    return components(entries, begin, knot, np.empty_like(knot)), knot


@part
def _reference(entries: Ints, begin: Ints, first: Ints) -> int:
    """A member whose chain has every message, or -1."""
    members, total = len(begin) - 1, 0
    present = np.zeros(members, np.int64)
    for m in range(first.shape[0]):
        somewhere = False
        for p in range(members):
            if first[m, p] != NEVER:
                somewhere = True
                present[p] += 1
        if somewhere:
            total += 1
    for p in range(members):
        if present[p] == total:
            return p
    return -1


@part
def _knots_along(
    entries: Ints, begin: Ints, first: Ints, last: Ints, reference: int, knot: Ints
) -> int:
    """Where one chain has all messages, any two are comparable, so that the knots lie along that
    chain one after the other: a knot ends where what has been met so far is, for every member,
    exactly the beginning of its own chain."""
    members = len(begin) - 1
    highest = np.full(members, -1, np.int64)
    met = np.zeros(members, np.int64)
    found, since = 0, begin[reference]
    distinct = 0
    for i in range(begin[reference], begin[reference + 1]):
        m = entries[i]
        if first[m, reference] == i - begin[reference]:
            distinct += 1
            for p in range(members):
                if last[m, p] != NEVER:
                    highest[p] = max(highest[p], last[m, p])
                    met[p] += 2 if last[m, p] != first[m, p] else 1
        closed = True
        for p in range(members):
            if highest[p] + 1 != met[p]:
                closed = False
                break
        if closed and highest[reference] == i - begin[reference]:
            if distinct > 1:
                found += 1
                for j in range(since, i + 1):
                    knot[entries[j]] = found
            since = i + 1
            distinct = 0
    return found
