"""Knots: the largest sets of messages that all come before each other in the chains."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.chain import ranks
from ordercast.pipeline.kernels.cycles import components
from ordercast.pipeline.kernels.index import NEVER
from ordercast.pipeline.kernels.kernel import Bools, Ints, part

__all__ = ["knots"]


@part
def knots(entries: Ints, begin: Ints, tangled: int, first: Ints, last: Ints) -> tuple[int, Ints]:
    """How many knots there are, and for each message the number of its knot (0: in none).

    `tangled` is what `entangled` found; `first` and `last` are the ranks (`ranks`) of all members,
    or room for those of some at a time.
    """
    knot = np.zeros(first.shape[0], np.int32)
    reference = _reference(entries, begin, first.shape[0])
    if reference >= 0:
        if tangled == 0:
            return 0, knot
        return _knots_along(entries, begin, reference, first, last, knot), knot
    return components(entries, begin, knot, np.empty_like(knot)), knot


@part
def _reference(entries: Ints, begin: Ints, messages: int) -> int:
    """A member whose chain has every message, or -1."""
    members, total = len(begin) - 1, 0
    present = np.zeros(members, np.int64)
    latest = np.full(messages, -1, np.int32)
    for p in range(members):
        for i in range(begin[p], begin[p + 1]):
            m = entries[i]
            total += latest[m] < 0
            present[p] += latest[m] != p
            latest[m] = p
    for p in range(members):
        if present[p] == total:
            return p
    return -1


@part
def _knots_along(
    entries: Ints, begin: Ints, reference: int, first: Ints, last: Ints, knot: Ints
) -> int:
    """Where one chain has all messages, any two are comparable, so that the knots lie along that
    chain one after the other: a knot ends where what has been met so far is, for every member,
    exactly the beginning of its own chain."""
    start, end = begin[reference], begin[reference + 1]
    latest = np.full(len(knot), -1, np.int64)
    fresh = np.zeros(end - start, np.bool_)
    for i in range(end - start):
        fresh[i] = latest[entries[start + i]] < 0
        latest[entries[start + i]] = i
    closed = np.ones(end - start, np.bool_)
    for low in range(0, len(begin) - 1, first.shape[1]):
        if first.shape[1] < len(begin) - 1:
            ranks(entries, begin, low, first, last)
        _not_closed(entries[start:end], fresh, first, last, closed)
    found, since = 0, 0
    distinct, highest = 0, -1
    for i in range(end - start):
        distinct += fresh[i]
        highest = max(highest, latest[entries[start + i]])
        if closed[i] and highest == i:
            if distinct > 1:
                found += 1
                for j in range(since, i + 1):
                    knot[entries[start + j]] = found
            since = i + 1
            distinct = 0
    return found


@part
def _not_closed(chain: Ints, fresh: Bools, first: Ints, last: Ints, closed: Bools) -> None:
    """Unsets `closed` where what the chain has so far is not the beginning of each member's."""
    members = first.shape[1]
    highest = np.full(members, -1, np.int64)
    met = np.zeros(members, np.int64)
    for i in range(len(chain)):
        m = chain[i]
        for p in range(members if fresh[i] else 0):
            if last[m, p] != NEVER:
                highest[p] = max(highest[p], last[m, p])
                met[p] += 2 if last[m, p] != first[m, p] else 1
        for p in range(members):
            if highest[p] + 1 != met[p]:
                closed[i] = False
                break
