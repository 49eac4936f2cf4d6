"""Cycles in the union of all processes' chains (see `chain`): orders that nobody could agree on."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import NEVER
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel, part
from ordercast.pipeline.kernels.sorting import by_name

__all__ = ["components", "shortest_cycle"]


@part
def _successors(entries: Ints, begin: Ints, messages: int) -> tuple[Ints, Ints]:
    """What comes right after each message in some chain: where its list starts, and all lists."""
    start = np.zeros(messages + 1, np.int64)
    for p in range(len(begin) - 1):
        for i in range(begin[p], begin[p + 1] - 1):
            start[entries[i] + 1] += 1
    for m in range(messages):
        start[m + 1] += start[m]
    after = np.empty(start[messages], np.int32)
    fill = start[:messages].copy()
    for p in range(len(begin) - 1):
        for i in range(begin[p], begin[p + 1] - 1):
            after[fill[entries[i]]] = entries[i + 1]
            fill[entries[i]] += 1
    return start, after


@kernel
def components(entries: Ints, begin: Ints, knot: Ints, order: Ints) -> int:
    """Strongly connected components, by Tarjan, without recursion. Fills in for each message the
    number of its component (0: it is alone), and returns how many there are; and the order in
    which they were found: each component after all that come after it."""
    messages = len(knot)
    start, after = _successors(entries, begin, messages)
    step = start[:messages].copy()
    path = np.empty(messages, np.int32)
    open_ = np.empty(messages, np.int32)
    inside = np.zeros(messages, np.bool_)
    index = np.zeros(messages, np.int32)  # 0: not visited yet
    low = np.zeros(messages, np.int32)
    clock, found, depth, height, done = 0, 0, 0, 0, 0
    for root in range(messages):
        fresh = root if index[root] == 0 else -1
        while fresh >= 0 or depth > 0:
            if fresh >= 0:
                clock += 1
                index[fresh], low[fresh], inside[fresh] = clock, clock, True
                path[depth], open_[height] = fresh, fresh
                depth += 1
                height += 1
                fresh = -1
            m = path[depth - 1]
            if step[m] < start[m + 1]:
                n = after[step[m]]
                step[m] += 1
                if index[n] == 0:
                    fresh = n
                elif inside[n]:
                    low[m] = min(low[m], index[n])
                continue
            depth -= 1
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[m])
            if low[m] == index[m]:
                found += open_[height - 1] != m
                left = _closed(open_, height, m, inside, knot, found, order[done:])
                done += height - left
                height = left
    return found


@part
def _closed(
    open_: Ints, height: int, m: int, inside: Bools, knot: Ints, number: int, order: Ints
) -> int:
    """Takes the component of m off the stack of what is open; returns how high that is then."""
    alone = open_[height - 1] == m
    top = height
    while True:
        height -= 1
        n = open_[height]
        order[top - 1 - height] = n
        inside[n] = False
        knot[n] = 0 if alone else number
        if n == m:
            return height


@part
def _places(entries: Ints, begin: Ints, concerned: Bools) -> tuple[Ints, Ints, Ints, Ints]:
    """The chains that each message concerned is in, and its first and last rank there: where its
    own begin, and all. There are no more of these than entries, however many chains there are."""
    messages = len(concerned)
    latest = np.full(messages, -1, np.int32)
    start = np.zeros(messages + 1, np.int64)
    for p in range(len(begin) - 1):
        for i in range(begin[p], begin[p + 1]):
            m = entries[i]
            if concerned[m]:
                start[m + 1] += latest[m] != p
                latest[m] = p
    for m in range(messages):
        start[m + 1] += start[m]
    chain = np.empty(start[messages], np.int32)
    first = np.empty(start[messages], np.int32)
    last = np.empty(start[messages], np.int32)
    fill = start[:messages].copy()
    latest[:] = -1
    for p in range(len(begin) - 1):
        for i in range(begin[p], begin[p + 1]):
            m = entries[i]
            if not concerned[m]:
                continue
            if latest[m] != p:
                chain[fill[m]] = p
                first[fill[m]] = i - begin[p]
                fill[m] += 1
            last[fill[m] - 1] = i - begin[p]
            latest[m] = p
    return start, chain, first, last


@part
def _is_before(start: Ints, chain: Ints, first: Ints, last: Ints, m: int, n: int) -> int:
    """The first member in whose chain m comes before n, or -1."""
    i, j = start[m], start[n]
    while i < start[m + 1] and j < start[n + 1]:
        if chain[i] < chain[j]:
            i += 1
        elif chain[i] > chain[j]:
            j += 1
        elif first[i] < last[j]:
            return int(chain[i])
        else:
            i += 1
            j += 1
    return -1


@kernel
def shortest_cycle(
    entries: Ints,
    begin: Ints,
    origins: Ints,
    numbers: Ints,
    tangled: Bools,
    knot: Ints,
    most: int,
) -> Ints:
    """The cycle with the fewest messages, each before the next and the last before the first; of
    several, the one with the smallest names. After `most` steps, the best so far. Each with the
    first member in whose chain it comes before the next."""
    start, chain, first, last = _places(entries, begin, tangled | (knot > 0))
    cycle = _shortest(
        entries, begin, start, chain, first, last, origins, numbers, tangled, knot, most
    )
    found = np.empty((len(cycle), 2), np.int64)
    for k in range(len(cycle)):
        n = cycle[(k + 1) % len(cycle)]
        found[k, 0] = cycle[k]
        found[k, 1] = _is_before(start, chain, first, last, cycle[k], n)
    return found


@part
def _shortest(
    entries: Ints,
    begin: Ints,
    start: Ints,
    chain: Ints,
    first: Ints,
    last: Ints,
    origins: Ints,
    numbers: Ints,
    tangled: Bools,
    knot: Ints,
    most: int,
) -> Ints:
    pairwise = False
    for m in range(len(tangled)):
        pairwise = pairwise or tangled[m]
    size = 0
    chosen = np.empty(len(tangled), np.int64)
    for m in range(len(tangled)):
        if tangled[m] or (knot[m] > 0 and not pairwise):
            chosen[size] = m
            size += 1
    chosen = by_name(origins, numbers, chosen[:size])
    if pairwise:
        m = chosen[0]
        for i in range(1, len(chosen)):
            n = chosen[i]
            if (
                _is_before(start, chain, first, last, m, n) >= 0
                and _is_before(start, chain, first, last, n, m) >= 0
            ):
                return np.array([m, n])
    total = len(knot)
    best = np.empty(0, np.int64)
    steps = 0
    distance = np.empty(total, np.int32)
    nearest = np.empty(total, np.int32)
    for i in range(len(chosen)):
        length, looked = _distances(
            entries, begin, start, chain, first, last, knot, chosen[i], distance
        )
        steps += looked
        if len(best) == 0 or length < len(best):
            best = np.empty(length, np.int64)
            best[0] = chosen[i]
            for m in range(total):
                nearest[m] = distance[m]
        if len(best) == 3 or steps > most:
            break
    for k in range(1, len(best)):
        for i in range(len(chosen)):
            n = chosen[i]
            left = len(best) - k
            if nearest[n] == left and _is_before(start, chain, first, last, best[k - 1], n) >= 0:
                best[k] = n
                break
    return best


@part
def _distances(
    entries: Ints,
    begin: Ints,
    start: Ints,
    chain: Ints,
    first: Ints,
    last: Ints,
    knot: Ints,
    goal: int,
    distance: Ints,
) -> tuple[int, int]:
    """For each message of the goal's knot, in how few steps it leads to the goal; the length of
    the shortest way round; and how much was looked at for that.

    Whatever is before a message in a chain leads to it in one step, so that what has been reached
    is always a beginning of each chain: only how far it goes must be kept.
    """
    members = len(begin) - 1
    lowest = np.full(members, NEVER, np.int64)
    for m in range(len(knot)):
        distance[m] = 0
        if knot[m] == knot[goal]:
            for k in range(start[m], start[m + 1]):
                lowest[chain[k]] = min(lowest[chain[k]], first[k])
    reached = lowest.copy()  # ranks below these are done
    upto = lowest.copy()
    for k in range(start[goal], start[goal + 1]):
        upto[chain[k]] = last[k]
    level, looked = 0, len(knot)
    while True:
        level += 1
        further = upto.copy()
        fresh = False
        for p in range(members):
            for rank in range(reached[p], upto[p]):
                looked += 1
                m = entries[begin[p] + rank]
                if knot[m] != knot[goal] or (distance[m] != 0 and m != goal):
                    continue
                if m == goal:
                    if level > 1:
                        return level, looked
                    continue
                fresh = True
                distance[m] = level
                for k in range(start[m], start[m + 1]):
                    further[chain[k]] = max(further[chain[k]], last[k])
            reached[p] = max(reached[p], upto[p])
        upto = further
        if not fresh:
            return len(knot) + 1, looked
