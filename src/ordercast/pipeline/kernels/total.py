"""Total order, seen from pairs: gaps, and pairs that two processes delivered in opposite orders.

One sweep finds who is concerned. Along the deliveries of p, keep for each q the latest row at q
of what p has delivered so far; if q delivered n before that, q lacks something that p had.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.findings import FIRST, SECOND, TOTAL_PAIRWISE, note
from ordercast.pipeline.kernels.index import ADDRESSED, DELIVER, NEVER
from ordercast.pipeline.kernels.kernel import Bools, Ints, part
from ordercast.pipeline.kernels.order import GAP, GAP_DOUBT
from ordercast.pipeline.kernels.sorting import smaller

__all__ = ["crossings", "mark_total", "pair_witness", "shared"]


_BITS = 62
"""Processes that are told by the bits of a number."""


@part
def mark_total(
    kind: Ints,
    message: Ints,
    starts: Ints,
    first: Ints,
    marks: Ints,
    known: int,
    complete: bool,
    crossed: Bools,
) -> int:
    """Sets GAP and GAP_DOUBT, and `crossed` for each message that is in a crossed pair.

    Returns how many messages are crossed.
    """
    members = len(starts) - 1
    latest = np.empty(members, np.int64)  # of all that was delivered
    owed = np.empty(members, np.int64)  # of what was addressed to q and delivered there
    lost = np.empty(members, np.bool_)  # something was addressed to q and never delivered there
    many = 0
    for p in range(members):
        latest[:] = -1
        owed[:] = -1
        lost[:] = False
        any_lost = False
        for row in range(starts[p], starts[p + 1]):
            n = message[row]
            if kind[row] != DELIVER or first[n, p] != row:
                continue
            behind = any_lost
            for q in range(members):
                if latest[q] > first[n, q]:
                    behind = True
            if behind:
                for q in range(members):
                    at = first[n, q]
                    if at == NEVER:
                        continue
                    if latest[q] > at and not crossed[n]:
                        crossed[n] = True
                        many += 1
                    if owed[q] > at or (lost[q] and complete):
                        marks[n, q] |= GAP
                    elif lost[q]:
                        marks[n, q] |= GAP_DOUBT
            for q in range(members):
                at = first[n, q]
                if at != NEVER:
                    latest[q] = max(latest[q], at)
                if n < known and marks[n, q] & ADDRESSED:
                    if at == NEVER:
                        lost[q] = True
                        any_lost = True
                    else:
                        owed[q] = max(owed[q], at)
    return many


@part
def shared(first: Ints, mine: Ints) -> int:
    """How many neighbours there are in all processes' orders, of messages that others delivered
    as well. Adds to `mine` how many such messages each process delivered."""
    members = first.shape[1]
    for m in range(first.shape[0]):
        count = 0
        for p in range(members):
            if first[m, p] != NEVER:
                count += 1
        if count >= 2:
            for p in range(members):
                if first[m, p] != NEVER:
                    mine[p] += 1
    total = 0
    for p in range(members):
        total += max(mine[p] - 1, 0)
    return total


@part
def _cross(first: Ints, m: int, n: int) -> bool:
    """Do two processes deliver these in opposite orders?"""
    earlier, later = False, False
    for p in range(first.shape[1]):
        a, b = first[m, p], first[n, p]
        if a == NEVER or b == NEVER:
            continue
        if a < b:
            earlier = True
        else:
            later = True
    return earlier and later


@part
def crossings(
    kind: Ints, message: Ints, starts: Ints, first: Ints, crossed: Bools, most: int
) -> tuple[int, bool]:
    """How many pairs are crossed, each counted at the first process that delivered both.

    Only what is crossed at all is looked at, and from each message back only as far as something
    can still cross it. Where everything crosses everything, that is quadratic: after looking at
    `most` pairs it stops, and says that it did.
    """
    members = len(starts) - 1
    pairs, looked = 0, 0
    for a in range(members):
        size = 0
        for row in range(starts[a], starts[a + 1]):
            if kind[row] == DELIVER and crossed[message[row]] and first[message[row], a] == row:
                size += 1
        mine = np.empty(size, np.int64)
        rows = np.empty((size, members), np.int32)
        highest = np.empty((size, members), np.int32)  # of this one and all before it
        who = np.zeros(size, np.int64)  # delivered it, of those before this process: a bit each
        size = 0
        for row in range(starts[a], starts[a + 1]):
            m = message[row]
            if kind[row] == DELIVER and crossed[m] and first[m, a] == row:
                mine[size] = m
                for q in range(members):
                    at = first[m, q]
                    rows[size, q] = at
                    if q < min(a, _BITS) and at != NEVER:
                        who[size] |= 1 << q
                    highest[size, q] = -1 if at == NEVER else at
                    if size > 0:
                        highest[size, q] = max(highest[size, q], highest[size - 1, q])
                size += 1
        if _counted_before(a, rows):
            continue
        for j in range(size):
            near = _near(rows, highest, j)
            looked += j - near
            for i in range(near, j):
                if who[i] & who[j] == 0 and not _shared_from(_BITS, a, rows, i, j):
                    for q in range(a + 1, members):
                        if rows[i, q] != NEVER and rows[i, q] > rows[j, q]:
                            pairs += 1
                            break
            if looked > most:
                return pairs, False
    return pairs, True


@part
def _near(rows: Ints, highest: Ints, j: int) -> int:
    """The first of those before j such that it, or one before it, comes after j somewhere."""
    low = j
    for q in range(rows.shape[1]):
        at = rows[j, q]
        if at == NEVER:
            continue
        step = 1
        while low > 0 and highest[max(low - step, 0), q] > at:
            if low <= step:
                low = 0
            else:
                low, step = low - step, 2 * step
        while step > 1:
            step //= 2
            if low >= step and highest[low - step, q] > at:
                low -= step
    return low


@part
def _shared_from(least: int, a: int, rows: Ints, i: int, j: int) -> bool:
    """Did any process from one on, but before a, deliver both?"""
    shared = False
    for b in range(least, a):
        shared = shared or (rows[i, b] != NEVER and rows[j, b] != NEVER)
    return shared


@part
def _counted_before(a: int, rows: Ints) -> bool:
    """Has one earlier process delivered all of these?"""
    for b in range(a):
        everything = True
        for i in range(len(rows)):
            if rows[i, b] == NEVER:
                everything = False
                break
        if everything:
            return True
    return False


@part
def pair_witness(origins: Ints, numbers: Ints, first: Ints, crossed: Bools, witness: Ints) -> None:
    """The crossed pair with the smallest names."""
    m = -1
    for other in range(len(crossed)):
        if crossed[other] and (m < 0 or smaller(origins, numbers, other, m)):
            m = other
    n = -1
    for other in range(len(crossed)):
        if (
            crossed[other]
            and (n < 0 or smaller(origins, numbers, other, n))
            and _cross(first, m, other)
        ):
            n = other
    one = -1
    for p in range(first.shape[1]):
        if first[m, p] == NEVER or first[n, p] == NEVER:
            continue
        if one < 0:
            one = p
        elif (first[m, p] < first[n, p]) != (first[m, one] < first[n, one]):
            # As far as `one` is concerned, m comes first or second.
            which = FIRST if first[m, one] < first[n, one] else SECOND
            note(witness[TOTAL_PAIRWISE], 0, p, first[n, p], m, n, one, which, 0, -1)
            return
