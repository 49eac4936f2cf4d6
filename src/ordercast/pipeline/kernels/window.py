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

An own message can be compared with any other, and whatever is wrong between two messages is seen
in the window of either.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import DELIVER, NEVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel

__all__ = [
    "AFTER",
    "BEFORE",
    "EARLY",
    "LATE",
    "OWN",
    "check_causal",
    "crossings",
    "end_row",
    "entangled",
    "enter",
    "first_row",
    "gaps",
    "had_before",
    "knots",
    "lacking",
    "outside",
    "partner",
]

BEFORE = -(2**30)
AFTER = 2**30
EARLY, OWN, LATE = -1, 0, 1


@kernel
def first_row(kind: Ints, origin: Ints, number: Ints, low: Ints, counted: Ints) -> int:
    """The first of a member's rows that has something of the window, or after it: a number above
    `low`. `counted` is what it had delivered of each origin and, at last, sent; and then, what it
    has, before that row."""
    row = 0
    while row < len(kind):
        sent = kind[row] == SEND
        if sent or kind[row] == DELIVER:
            if number[row] > low[origin[row]]:
                break
            counted[len(low) if sent else origin[row]] += 1
        row += 1
    return row


@kernel
def end_row(kind: Ints, origin: Ints, number: Ints, high: Ints, counted: Ints) -> int:
    """The row after the last one that has something of the window, or before it. `counted` is as
    for `first_row`, but from the end back."""
    row = len(kind)
    while row > 0:
        sent = kind[row - 1] == SEND
        if sent or kind[row - 1] == DELIVER:
            if number[row - 1] <= high[origin[row - 1]]:
                break
            counted[len(high) if sent else origin[row - 1]] -= 1
        row -= 1
    return row


@kernel
def outside(
    me: int,
    counted: Ints,
    last: Ints,
    start: Ints,
    floor: Ints,
    rank: Ints,
    chain: Ints,
    sends: Ints,
) -> None:
    """Enters what can be said of every message before a member's rows are looked at. `counted`: see
    `enter`; `last` is what it will have delivered in the end."""
    for o in range(len(floor)):
        for m in range(start[o], start[o + 1]):
            n = floor[o] + (m - start[o]) + 1
            where = NEVER
            if n <= counted[o]:
                where = BEFORE
            elif n <= last[o]:
                where = AFTER
            rank[m, me] = where
            chain[m, me] = where
    for m in range(start[me], start[me + 1]):
        sends[m] = BEFORE if floor[me] + (m - start[me]) + 1 <= counted[len(floor)] else AFTER
        if chain[m, me] == NEVER:
            chain[m, me] = sends[m]


@kernel
def enter(
    me: int,
    kind: Ints,
    origin: Ints,
    number: Ints,
    counted: Ints,
    start: Ints,
    floor: Ints,
    base: int,
    chain_base: int,
    turn: Ints,
    rank: Ints,
    chain: Ints,
    sends: Ints,
    needs: Ints,
    done: Ints,
) -> int:
    """Enters some of a member's rows, one piece after the other, into the tables; and into `done`
    what it did there, as messages: those that it delivered as they are, those that it sent as
    -1 - m. Returns how many they are.

    `counted` is what it had delivered of each origin and, at last, sent; and then, what it has.
    `needs` gets, for each own message that it sent, what it had delivered by then. The other tables
    may be empty: then they are left alone.
    """
    with_ranks = len(rank) > 0
    members = len(floor)
    before = 0
    for o in range(members):
        before += counted[o]
    links = before + counted[members]
    many = 0
    for row in range(len(kind)):
        if kind[row] == DELIVER:
            o, n = origin[row], number[row]
            m = start[o] + n - floor[o] - 1
            if with_ranks:
                rank[m, me] = before - base
                chain[m, me] = links - chain_base
            counted[o] = n
            before += 1
            links += 1
            done[many] = m
            many += 1
        elif kind[row] == SEND:
            m = start[me] + number[row] - floor[me] - 1
            if with_ranks:
                sends[m] = links - chain_base
                if chain[m, me] == AFTER and rank[m, me] == NEVER:
                    chain[m, me] = links - chain_base
            if turn[m] == OWN:
                for o in range(members):
                    needs[m, o] = counted[o]
            counted[members] += 1
            links += 1
            done[many] = -1 - m
            many += 1
    return many


# From here on the loops over members have no branches, so that the compiler can take several
# members in one step: these loops are most of what judging a huge run costs.


@kernel
def check_causal(done: Ints, delivered: Ints, origins: Ints, turn: Ints, needs: Ints) -> bool:
    """Had this member, at each delivery of an own message, all that was delivered before it was
    sent? As everyone delivers each origin's messages one after the other, counts tell."""
    counted = delivered.astype(needs.dtype)
    for i in range(len(done)):
        m = done[i]
        if m < 0:
            continue
        if turn[m] == OWN:
            lacking = False
            for o in range(len(counted)):
                lacking |= needs[m, o] > counted[o]
            if lacking:
                return False
        counted[origins[m]] += 1
    return True


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
def lacking(n: int, q: int, rank: Ints) -> tuple[int, int]:
    """The first message by name that q lacked when it delivered n, and who had it by then."""
    for m in range(rank.shape[0]):
        if rank[m, q] > rank[n, q]:
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
def knots(
    sequence: Ints, origins: Ints, turn: Ints, rank: Ints, last: Ints, with_sends: bool
) -> int:
    """How many knots end in this window; `sequence` is the reference's order of its messages.

    A knot ends where what the reference has delivered so far is, for each member, exactly the
    beginning of its own chain; `last` is `rank` or `chain`.
    """
    members = last.shape[1]
    highest = np.full(members, -1, np.int64)
    met = np.zeros(members, np.int64)
    for m in range(len(turn)):
        if turn[m] == EARLY:
            for p in range(members):
                if last[m, p] != NEVER and last[m, p] > highest[p]:
                    highest[p] = last[m, p]
    since, found = 0, 0
    for p in range(members):
        if highest[p] >= 0:
            since = 1  # it began in an earlier window
    for i in range(len(sequence)):
        m = sequence[i]
        since += 1
        closed = True
        for p in range(members):
            if rank[m, p] != NEVER:
                met[p] += 1
            if with_sends and origins[m] == p:
                met[p] += 1
            if last[m, p] != NEVER and last[m, p] > highest[p]:
                highest[p] = last[m, p]
            if highest[p] + 1 != met[p]:
                closed = False
        if closed:
            if since > 1:
                found += 1
            since = 0
    return found


@kernel
def crossings(sequence: Ints, turn: Ints, rank: Ints, most: int) -> tuple[int, bool]:
    """How many pairs are crossed of which the second, for the reference, is an own message; see
    `total.crossings`."""
    members = rank.shape[1]
    size = len(sequence)
    which = np.empty(len(turn), np.int64)
    lowest = np.full(members, NEVER, np.int32)
    for i in range(size):
        for p in range(members):
            lowest[p] = min(lowest[p], rank[sequence[i], p])
    early = 0
    for m in range(len(turn)):
        if turn[m] == EARLY:
            for p in range(members):
                if rank[m, p] > lowest[p] and rank[m, p] != NEVER:
                    which[early] = m
                    early += 1
                    break
    for i in range(size):
        which[early + i] = sequence[i]
    size += early
    rows = np.empty((size, members), np.int32)
    highest = np.empty((size, members), np.int32)
    for i in range(size):
        for p in range(members):
            at = rank[which[i], p]
            rows[i, p] = BEFORE if at == NEVER else at
            highest[i, p] = rows[i, p] if i == 0 else max(rows[i, p], highest[i - 1, p])
    pairs, looked = 0, 0
    for j in range(early, size):
        mine = rank[which[j]]
        i = j - 1
        while i >= 0:
            near, cross = False, False
            for p in range(members):
                near |= highest[i, p] > mine[p]
                cross |= rows[i, p] > mine[p]
            if not near:
                break
            looked += 1
            pairs += cross
            i -= 1
        if looked > most:
            return pairs, False
    return pairs, True


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
