"""A window of a huge healthy run, judged on its own.

One member, the reference, has delivered every message; a window is a stretch of its log, and the
messages in it are the window's own. For every member, a stretch of the log is at hand that has all
it did with them. In there are also messages of neighbouring windows, early and late ones: all
together, origin by origin, they are numbered from 0 (`start`, `floor`).

    turn[m]     EARLY, OWN or LATE
    rank[m, p]  when p delivered m: the how-manieth of its deliveries, not counting those that are
                of earlier windows; BEFORE or AFTER, if it lies outside its stretch; or NEVER
    chain[m, p] the same among all that p sent or delivered
    sends[m]    where in the chain of its origin m was sent
    stamp[m]    if m is an own one: the row of `needs` that says what its origin had delivered of
                each origin when it sent m; else NOT_OWN

An own message can be compared with any other, and whatever is wrong between two messages is seen
in the window of either.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.entering import BEFORE, NOT_OWN, OWN
from ordercast.pipeline.kernels.index import NEVER
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel

__all__ = ["entangled", "gaps", "had_before", "knowing", "lacking", "mark_missing", "partner"]


# From here on the loops over members have no branches, so that the compiler can take several
# members in one step: these loops are most of what judging a huge run costs.


@kernel
def mark_missing(
    done: Ints,
    delivered: Ints,
    stamped: Ints,
    bits: int,
    needs: Ints,
    start: Ints,
    floor: Ints,
    missing: Bools,
) -> bool:
    """Marks what this member lacked, when it delivered an own message, of all that was delivered
    before that was sent. As everyone delivers each origin's messages one after the other, counts
    tell; and as they only grow, a stamp that the message before had need not be looked at again.
    `stamped` is `stamp` and, in the last bits, the origin: one look for both. Returns whether
    there is anything."""
    counted = delivered.astype(needs.dtype)
    looked = np.full(len(counted), NOT_OWN, stamped.dtype)
    origin = (1 << bits) - 1
    found = False
    for i in range(len(done)):
        m = done[i]
        if m < 0:
            continue
        known = stamped[m]
        me = known & origin
        if known != looked[me]:
            looked[me] = known
            row = known >> bits
            lacking = False
            if row != NOT_OWN:
                for o in range(len(counted)):
                    lacking |= needs[row, o] > counted[o]
            if lacking:
                found = True
                for o in range(len(counted)):
                    for n in range(counted[o] - floor[o], needs[row, o] - floor[o]):
                        missing[start[o] + n] = True
        counted[me] += 1
    return found


@kernel
def knowing(
    stamp: Ints, needs: Ints, start: Ints, floor: Ints, low: Ints, high: Ints, known: Ints
) -> None:
    """`known` says, for some message that is set apart, from which place on each origin's messages
    know of it, as far as that is known; here it learns of the own messages that know of it through
    others. What an origin sends later has delivered more, so that the first can be searched for."""
    members = len(floor)
    changed = True
    while changed:
        changed = False
        for p in range(members):
            first, last = low[p] + 1, min(high[p] + 1, known[p])
            end = last
            while first < last:
                middle = (first + last) // 2
                m = start[p] + middle - floor[p] - 1
                aware = False
                for o in range(members):
                    aware |= needs[stamp[m], o] >= known[o]
                if aware:
                    last = middle
                else:
                    first = middle + 1
            if first < end:
                known[p] = first
                changed = True


@kernel
def had_before(last: Ints, sends: Ints, origins: Ints, never: bool) -> Ints:
    """What each member had done before its stretch: the latest rank of that, for each other one.
    `last` is `rank`, and then `sends` is empty, or `chain`. With `never`, what somebody never
    delivers comes after everything else."""
    members = last.shape[1]
    latest = np.full((members, members), BEFORE, np.int32)
    for m in range(last.shape[0]):
        sender = origins[m] if len(sends) > 0 and sends[m] == BEFORE else -1
        mixed = sender >= 0 and last[m, sender] != BEFORE
        for p in range(members):
            mixed |= last[m, p] != last[m, 0]
        if not mixed:
            continue
        for p in range(members):
            if last[m, p] == BEFORE or p == sender:
                for q in range(members):
                    if last[m, q] > latest[p, q] and (never or last[m, q] != NEVER):
                        latest[p, q] = last[m, q]
    return latest


@kernel
def gaps(
    done: Ints,
    turn: Ints,
    had: Ints,
    delivered: Ints,
    rank: Ints,
    whole: bool,
    gap: Bools,
    crossed: Bools,
) -> None:
    """Along what one member delivered, marks in `gap` who delivered an own message without
    something that this one had by then, and in `crossed` the own messages that somebody delivered
    before something that this one had by then. `had` and `delivered`: see `had_before`, with and
    without what somebody never delivers; if it is `whole`, there is no such thing."""
    members = rank.shape[1]
    latest = had.copy()
    real = delivered.copy()
    for i in range(len(done)):
        n = done[i]
        if n < 0:
            continue
        at = rank[n]
        if turn[n] == OWN:
            behind = False
            for q in range(members):
                behind |= latest[q] > at[q]
            if behind:
                marked = gap[n]
                for q in range(members):
                    marked[q] |= latest[q] > at[q]
                if not whole:
                    behind = False
                    for q in range(members):
                        behind |= real[q] > at[q]
                crossed[n] |= behind
        for q in range(members):
            latest[q] = max(latest[q], at[q])
        if not whole:
            for q in range(members):
                if at[q] != NEVER:
                    real[q] = max(real[q], at[q])


@kernel
def lacking(n: int, q: int, rank: Ints, never: bool) -> tuple[int, int]:
    """The first message by name that q lacked when it delivered n, and who had it by then. Without
    `never`, what q never delivers does not count."""
    for m in range(rank.shape[0]):
        if rank[m, q] > rank[n, q] and (never or rank[m, q] != NEVER):
            for p in range(rank.shape[1]):
                if rank[m, p] < rank[n, p] and rank[n, p] != NEVER:
                    return m, p
    return -1, -1


@kernel
def entangled(
    me: int,
    done: Ints,
    turn: Ints,
    origins: Ints,
    had: Ints,
    chain: Ints,
    sends: Ints,
    marked: Bools,
) -> None:
    """Marks the own messages that come both before and after some other one."""
    members = chain.shape[1]
    latest = had.copy()
    for i in range(len(done)):
        sending = done[i] < 0
        n = -1 - done[i] if sending else done[i]
        at = chain[n]
        if turn[n] == OWN and not marked[n]:
            behind = False
            for q in range(members):
                behind |= latest[q] > at[q]
            o = origins[n]
            limit = sends[n]
            if o == me and not sending and at[o] == limit + 1:
                limit += 1  # delivered right after it was sent: nothing is in between
            marked[n] = behind or latest[o] > limit
        for q in range(members):
            latest[q] = max(latest[q], at[q] if at[q] != NEVER else latest[q])


@kernel
def partner(m: int, last: Ints, sends: Ints, origins: Ints) -> int:
    """The first message that comes both before and after m. They are in the order of names.
    `last` and `sends`: see `had_before`."""
    for n in range(last.shape[0]):
        if n == m:
            continue
        forth, back = False, False
        for p in range(last.shape[1]):
            m_first, n_first = last[m, p], last[n, p]
            if len(sends) > 0:
                m_first = sends[m] if origins[m] == p else m_first
                n_first = sends[n] if origins[n] == p else n_first
            forth |= last[n, p] != NEVER and m_first < last[n, p]
            back |= last[m, p] != NEVER and n_first < last[m, p]
        if forth and back:
            return n
    return -1
