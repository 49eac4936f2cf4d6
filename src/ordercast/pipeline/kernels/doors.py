"""Knots of a block (`block`), and its doors: the messages by which what leads out of it and in
again must go.

Chains are as in `chain`, but only within the block. What a message leads to is the end of each
chain, from some rank on; so that rank is all that must be kept.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.chain import chain_of, ranks
from ordercast.pipeline.kernels.cycles import components
from ordercast.pipeline.kernels.index import NEVER, OTHER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel, part

__all__ = ["AFTER", "BEFORE", "tie_block"]

BEFORE, AFTER = 1, 2
"""On which sides of the block a door is."""


@kernel
def tie_block(
    kind: Ints,
    message: Ints,
    starts: Ints,
    fresh: Bools,
    messages: int,
    low: Ints,
    high: Ints,
    with_sends: bool,
    more: Ints,
    more_begin: Ints,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, int]:
    """Knots among the rows between the cuts. `more`: further chains of messages, which lie in one
    knot for reasons beyond this block.

    A message that has rows elsewhere, or is at an end of a chain, is a door: what leads out of the
    block and in again leads through one. So is one message of each knot between doors of one side,
    as another way between those doors would make it a part of another knot.

    Returns the chains, and where each begins; each message's knot (0: none); the doors, and on
    which sides they are (BEFORE, AFTER); which door leads to which, as pairs of places among the
    doors; and how many knots are without a door.
    """
    size = len(starts) - 1
    inside = np.full(len(kind), OTHER, np.int8)
    within = np.zeros(len(kind), np.bool_)
    door = np.zeros(messages, np.uint8)
    for p in range(size):
        for row in range(starts[p], starts[p + 1]):
            if low[p] <= row < high[p]:
                inside[row], within[row] = kind[row], fresh[row]
            elif kind[row] == SEND or fresh[row]:
                door[message[row]] |= BEFORE if row < low[p] else AFTER
    entries, begin = chain_of(inside, message, starts, within, with_sends)
    earliest = np.empty((messages, size), np.int32)
    latest = np.empty((messages, size), np.int32)
    ranks(entries, begin, 0, earliest, latest)
    for p in range(size):
        if begin[p] < begin[p + 1]:
            door[entries[begin[p]]] |= BEFORE
            door[entries[begin[p + 1] - 1]] |= AFTER
    knot = np.zeros(messages, np.int32)
    order = np.empty(messages, np.int32)
    many = components(entries, begin, knot, order)
    if many > 0:
        _open_between(entries, begin, earliest, latest, knot, many, order, door)
    if len(more) > 0:  # the doors stay the same
        everything = np.concatenate((entries, more))
        ends = np.concatenate((begin, begin[size] + more_begin[1:]))
        many = components(everything, ends, knot, order)
    closed = np.ones(many + 1, np.bool_)
    closed[0] = False
    for i in range(len(entries)):
        if door[entries[i]]:
            closed[knot[entries[i]]] = False
    doors, ways = _doors_of(entries, begin, earliest, latest, knot, order, door)
    sides = door[doors]
    return entries, begin, knot, doors, sides, ways, int(closed.sum())


@part
def _doors_of(
    entries: Ints,
    begin: Ints,
    earliest: Ints,
    latest: Ints,
    knot: Ints,
    order: Ints,
    door: Ints,
) -> tuple[Ints, Ints]:
    """All doors, and which leads to which, as pairs of places among them."""
    size = len(begin) - 1
    reach = _reach(entries, begin, earliest, latest, knot, order)
    place = np.full(len(knot), -1, np.int32)
    doors = np.empty(len(knot), np.int32)
    many, passed = 0, 0
    for i in range(len(entries)):
        m = entries[i]
        passed += door[m] != 0
        if door[m] and place[m] < 0:
            place[m] = many
            doors[many] = m
            many += 1
    ways = np.empty((passed + many * size, 2), np.int64)
    steps = 0
    following = np.empty(len(entries), np.int32)  # the door at each rank, or else the next one
    for p in range(size):
        at = -1
        for i in range(begin[p + 1] - 1, begin[p] - 1, -1):
            m = entries[i]
            if door[m]:
                if at >= 0:
                    ways[steps, 0], ways[steps, 1] = place[m], at
                    steps += 1
                at = place[m]
            following[i] = at
    for i in range(many):
        for p in range(size):
            rank = reach[doors[i], p]
            if rank == NEVER:
                continue
            target = following[begin[p] + rank]
            if target >= 0 and target != i:
                ways[steps, 0], ways[steps, 1] = i, target
                steps += 1
    return doors[:many], ways[:steps]


@part
def _reach(
    entries: Ints, begin: Ints, earliest: Ints, latest: Ints, knot: Ints, order: Ints
) -> Ints:
    """For each message, the first rank in each chain that it leads to."""
    size = len(begin) - 1
    reach = earliest.copy()
    best = np.empty(size, np.int64)
    i = 0
    while i < len(order):
        j = _end_of(knot, order, i)
        best[:] = NEVER
        for k in range(i, j):
            m = order[k]
            for p in range(size):
                best[p] = min(best[p], reach[m, p])
                for after in _after(entries, begin, earliest, latest, m, p):
                    for q in range(size) if after >= 0 else range(0):
                        best[q] = min(best[q], reach[after, q])
        for k in range(i, j):
            for p in range(size):
                reach[order[k], p] = best[p]
        i = j
    return reach


@part
def _end_of(knot: Ints, order: Ints, i: int) -> int:
    """Where in the order of components the one that begins here ends."""
    j = i + 1
    while j < len(order) and knot[order[i]] > 0 and knot[order[j]] == knot[order[i]]:
        j += 1
    return j


@part
def _after(
    entries: Ints, begin: Ints, earliest: Ints, latest: Ints, m: int, p: int
) -> tuple[int, int]:
    """What comes right after a message in a chain, or -1; a process that sent it may have it twice,
    and what comes after the second time need not come after anything else."""
    first, last = -1, -1
    if earliest[m, p] != NEVER:
        if begin[p] + earliest[m, p] + 1 < begin[p + 1]:
            first = int(entries[begin[p] + earliest[m, p] + 1])
        if begin[p] + latest[m, p] + 1 < begin[p + 1]:
            last = int(entries[begin[p] + latest[m, p] + 1])
    return first, last


@part
def _open_between(
    entries: Ints,
    begin: Ints,
    earliest: Ints,
    latest: Ints,
    knot: Ints,
    many: int,
    order: Ints,
    door: Ints,
) -> None:
    """Makes a door of one message of each knot that leads to a door before the block, or that a
    door after it leads to."""
    before = np.zeros(len(knot), np.bool_)
    after = np.zeros(len(knot), np.bool_)
    i = 0
    while i < len(order):  # each component after all that it leads to
        j = _end_of(knot, order, i)
        leads = False
        for k in range(i, j):
            leads = leads or _leads(entries, begin, earliest, latest, before, door, order[k])
        for k in range(i, j):
            before[order[k]] = leads
        i = j
    i = len(order)
    while i > 0:  # and the other way round
        j = i - 1
        while j > 0 and knot[order[i - 1]] > 0 and knot[order[j - 1]] == knot[order[i - 1]]:
            j -= 1
        led = False
        for k in range(j, i):
            led = led or after[order[k]] or door[order[k]] & AFTER != 0
        for k in range(j, i):
            after[order[k]] = led
            for p in range(len(begin) - 1) if led else range(0):
                for following in _after(entries, begin, earliest, latest, order[k], p):
                    if following >= 0:
                        after[following] = True
        i = j
    done = np.zeros(many + 1, np.bool_)
    for i in range(len(entries)):
        if door[entries[i]]:
            done[knot[entries[i]]] = True
    for i in range(len(entries)):
        m = entries[i]
        if knot[m] > 0 and not done[knot[m]] and (before[m] or after[m]):
            done[knot[m]] = True
            door[m] = (BEFORE if before[m] else 0) | (AFTER if after[m] else 0)


@part
def _leads(
    entries: Ints, begin: Ints, earliest: Ints, latest: Ints, before: Bools, door: Ints, m: int
) -> bool:
    if door[m] & BEFORE:
        return True
    for p in range(len(begin) - 1):
        for after in _after(entries, begin, earliest, latest, m, p):
            if after >= 0 and before[after]:
                return True
    return False
