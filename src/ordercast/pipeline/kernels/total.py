"""Total order, seen from pairs: gaps, and pairs that two processes delivered in opposite orders.

One sweep finds who is concerned. Along the deliveries of p, keep for each q the latest row at q
of what p has delivered so far; if q delivered n before that, q lacks something that p had.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.findings import FIRST, SECOND, TOTAL_PAIRWISE, note
from ordercast.pipeline.kernels.index import ADDRESSED, NEVER
from ordercast.pipeline.kernels.kernel import Bools, Ints, part
from ordercast.pipeline.kernels.order import GAP, GAP_DOUBT
from ordercast.pipeline.kernels.sorting import smaller

__all__ = ["crossings", "mark_total", "pair_witness", "shared"]


_BITS = 62
"""Processes that are told by the bits of a number."""


@part
def mark_total(
    message: Ints,
    starts: Ints,
    fresh: Bools,
    first: Ints,
    marks: Ints,
    known: int,
    complete: bool,
    crossed: Bools,
) -> int:
    """Sets GAP and GAP_DOUBT, and `crossed` for each message that is in a crossed pair, as far as
    the members that `first` and `marks` are of show it.

    Returns how many messages are crossed that were not before.
    """
    members = first.shape[1]
    latest = np.empty(members, np.int64)  # of all that was delivered
    owed = np.empty(members, np.int64)  # of what was addressed to q and delivered there
    lost = np.empty(members, np.bool_)  # something was addressed to q and never delivered there
    many = 0
    for p in range(len(starts) - 1):
        if starts[p] == starts[p + 1]:
            continue
        latest[:] = -1
        owed[:] = -1
        lost[:] = False
        any_lost = False
        for row in range(starts[p], starts[p + 1]):
            n = message[row]
            if not fresh[row]:
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
def shared(message: Ints, starts: Ints, fresh: Bools, messages: int, mine: Ints) -> int:
    """How many neighbours there are in all processes' orders, of messages that others delivered
    as well. Adds to `mine` how many such messages each process delivered."""
    times = np.zeros(messages, np.int32)
    for row in range(len(fresh)):
        if fresh[row]:
            times[message[row]] += 1
    total = 0
    for p in range(len(mine)):
        for row in range(starts[p], starts[p + 1]):
            if fresh[row] and times[message[row]] >= 2:
                mine[p] += 1
        total += max(mine[p] - 1, 0)
    return total


@part
def crossings(
    message: Ints, starts: Ints, fresh: Bools, crossed: Bools, most: int
) -> tuple[int, bool]:
    """How many pairs are crossed, each counted at the first process that delivered both.

    Only what is crossed at all is looked at, and from each message back only as far as something
    can still cross it. Where everything crosses everything, that is quadratic: after looking at
    `most` pairs it stops, and says that it did.
    """
    members = len(starts) - 1
    begin, who_did, when = _deliveries(message, starts, fresh, crossed)
    times = np.zeros(members, np.int32)
    column = np.empty(members, np.int32)
    pairs, looked = 0, 0
    for a in range(members):
        mine = _crossed_at(message, starts, fresh, crossed, a)
        size = len(mine)
        if size < 2:
            continue
        # Of the others only who delivered two of these, and in the order of all.
        times[:] = 0
        for i in range(size):
            for k in range(begin[mine[i]], begin[mine[i] + 1]):
                times[who_did[k]] += 1
        many, me = 0, 0
        for q in range(members):
            if q == a:
                me = many
            column[q] = many if times[q] >= 2 else -1
            many += times[q] >= 2
        rows = np.full((size, many), NEVER, np.int32)
        highest = np.full((size, many), -1, np.int32)  # of this one and all before it
        who = np.zeros(size, np.int64)  # delivered it, of those before this process: a bit each
        for i in range(size):
            for k in range(begin[mine[i]], begin[mine[i] + 1]):
                q = column[who_did[k]]
                if q >= 0:
                    rows[i, q] = highest[i, q] = when[k]
                    if q < min(me, _BITS):
                        who[i] |= 1 << q
            for q in range(many if i > 0 else 0):
                highest[i, q] = max(highest[i, q], highest[i - 1, q])
        if _counted_before(me, rows):
            continue
        for j in range(size):
            near = _near(rows, highest, j)
            looked += j - near
            for i in range(near, j):
                if who[i] & who[j] == 0 and not _shared_from(_BITS, me, rows, i, j):
                    for q in range(me + 1, many):
                        if rows[i, q] != NEVER and rows[i, q] > rows[j, q]:
                            pairs += 1
                            break
            if looked > most:
                return pairs, False
    return pairs, True


@part
def _deliveries(
    message: Ints, starts: Ints, fresh: Bools, crossed: Bools
) -> tuple[Ints, Ints, Ints]:
    """Of each crossed message who delivered it, and in which row: where its own begin, and all."""
    begin = np.zeros(len(crossed) + 1, np.int64)
    for row in range(len(fresh)):
        if fresh[row] and crossed[message[row]]:
            begin[message[row] + 1] += 1
    for m in range(len(crossed)):
        begin[m + 1] += begin[m]
    who = np.empty(begin[len(crossed)], np.int32)
    when = np.empty(begin[len(crossed)], np.int32)
    fill = begin[: len(crossed)].copy()
    for p in range(len(starts) - 1):
        for row in range(starts[p], starts[p + 1]):
            m = message[row]
            if fresh[row] and crossed[m]:
                who[fill[m]] = p
                when[fill[m]] = row
                fill[m] += 1
    return begin, who, when


@part
def _crossed_at(message: Ints, starts: Ints, fresh: Bools, crossed: Bools, p: int) -> Ints:
    """What a process delivered of them, in its order."""
    size = 0
    for row in range(starts[p], starts[p + 1]):
        size += fresh[row] and crossed[message[row]]
    mine = np.empty(size, np.int64)
    size = 0
    for row in range(starts[p], starts[p + 1]):
        if fresh[row] and crossed[message[row]]:
            mine[size] = message[row]
            size += 1
    return mine


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
def pair_witness(
    message: Ints,
    starts: Ints,
    fresh: Bools,
    origins: Ints,
    numbers: Ints,
    crossed: Bools,
    witness: Ints,
) -> None:
    """The crossed pair with the smallest names."""
    m = -1
    for other in range(len(crossed)):
        if crossed[other] and (m < 0 or smaller(origins, numbers, other, m)):
            m = other
    at_m = _places(message, starts, fresh, m)
    earlier = np.zeros(len(crossed), np.bool_)  # somebody delivered it before m
    later = np.zeros(len(crossed), np.bool_)
    for p in range(len(at_m)):
        for row in range(starts[p], starts[p + 1] if at_m[p] != NEVER else 0):
            if fresh[row]:
                earlier[message[row]] |= row < at_m[p]
                later[message[row]] |= row > at_m[p]
    n = -1
    for other in range(len(crossed)):
        if (
            crossed[other]
            and earlier[other]
            and later[other]
            and (n < 0 or smaller(origins, numbers, other, n))
        ):
            n = other
    at_n = _places(message, starts, fresh, n)
    one = -1
    for p in range(len(at_m)):
        if at_m[p] == NEVER or at_n[p] == NEVER:
            continue
        if one < 0:
            one = p
        elif (at_m[p] < at_n[p]) != (at_m[one] < at_n[one]):
            # As far as `one` is concerned, m comes first or second.
            which = FIRST if at_m[one] < at_n[one] else SECOND
            note(witness[TOTAL_PAIRWISE], 0, p, at_n[p], m, n, one, which, 0, -1)
            return


@part
def _places(message: Ints, starts: Ints, fresh: Bools, m: int) -> Ints:
    """In which row each member delivered a message, or NEVER."""
    at = np.full(len(starts) - 1, NEVER, np.int32)
    for p in range(len(at)):
        for row in range(starts[p], starts[p + 1]):
            if fresh[row] and message[row] == m:
                at[p] = row
    return at
