"""A window of a huge healthy run, judged on its own.

One member, the reference, has delivered every message; a window is a stretch of its log, and the
messages in it are the window's own. For every member, a stretch of the log is at hand that has all
it did with them. In there are also messages of neighbouring windows, early and late ones: all
together, origin by origin, they are numbered from 0 (`start`, `floor`).

    turn[m]     EARLY, OWN or LATE
    rank[m, p]  when p delivered m: the how-manieth of its deliveries, not counting those that are
                of earlier windows; BEFORE or AFTER, if it lies outside its stretch; or NEVER
    chain[m, p] the same among all that p sent or delivered

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
    "entangled",
    "enter",
    "gaps",
    "had_before",
    "knots",
    "partner",
]

BEFORE = -(2**30)
AFTER = 2**30
EARLY, OWN, LATE = -1, 0, 1


@kernel
def enter(
    me: int,
    kind: Ints,
    origin: Ints,
    number: Ints,
    delivered: Ints,
    sent: int,
    last: Ints,
    start: Ints,
    floor: Ints,
    base: int,
    chain_base: int,
    turn: Ints,
    rank: Ints,
    first: Ints,
    chain: Ints,
    needs: Ints,
) -> Ints:
    """Enters one member's stretch into the tables; returns what it did there, as messages: those
    that it delivered as they are, those that it sent as -1 - m.

    `delivered` and `sent` count what it had done before its stretch, `last` what it will have
    delivered in the end. `first` is `chain`, but has the send of the member's own messages;
    `needs` gets, for each own message that it sent, what it had delivered by then. The other tables
    may be empty: then they are left alone.
    """
    with_ranks = len(rank) > 0
    if with_ranks:
        _outside(me, delivered, sent, last, start, floor, rank, first, chain)
    counted = delivered.copy()
    before = 0
    for o in range(len(delivered)):
        before += delivered[o]
    links = before + sent
    done = np.empty(len(kind), np.int32)
    many = 0
    for row in range(len(kind)):
        if kind[row] == DELIVER:
            o, n = origin[row], number[row]
            m = start[o] + n - floor[o] - 1
            if with_ranks:
                rank[m, me] = before - base
                chain[m, me] = links - chain_base
                if o != me:
                    first[m, me] = links - chain_base
            counted[o] = n
            before += 1
            links += 1
            done[many] = m
            many += 1
        elif kind[row] == SEND:
            m = start[me] + number[row] - floor[me] - 1
            if with_ranks:
                first[m, me] = links - chain_base
                if chain[m, me] == AFTER and rank[m, me] == NEVER:
                    chain[m, me] = links - chain_base
            if turn[m] == OWN:
                for o in range(len(counted)):
                    needs[m, o] = counted[o]
            links += 1
            done[many] = -1 - m
            many += 1
    return done[:many]


@kernel
def _outside(
    me: int,
    delivered: Ints,
    sent: int,
    last: Ints,
    start: Ints,
    floor: Ints,
    rank: Ints,
    first: Ints,
    chain: Ints,
) -> None:
    """What can be said of every message before the stretch is looked at."""
    for o in range(len(floor)):
        for m in range(start[o], start[o + 1]):
            n = floor[o] + (m - start[o]) + 1
            where = NEVER
            if n <= delivered[o]:
                where = BEFORE
            elif n <= last[o]:
                where = AFTER
            rank[m, me] = where
            chain[m, me] = where
            first[m, me] = where
    for m in range(start[me], start[me + 1]):
        first[m, me] = BEFORE if floor[me] + (m - start[me]) + 1 <= sent else AFTER
        if chain[m, me] == NEVER:
            chain[m, me] = first[m, me]


@kernel
def check_causal(done: Ints, delivered: Ints, origins: Ints, turn: Ints, needs: Ints) -> bool:
    """Had this member, at each delivery of an own message, all that was delivered before it was
    sent? As everyone delivers each origin's messages one after the other, counts tell."""
    counted = delivered.copy()
    for i in range(len(done)):
        m = done[i]
        if m < 0:
            continue
        if turn[m] == OWN:
            lacking = False
            for o in range(len(counted)):
                if needs[m, o] > counted[o]:
                    lacking = True
            if lacking:
                return False
        counted[origins[m]] += 1
    return True


@kernel
def had_before(first: Ints, last: Ints, never: bool) -> Ints:
    """What each member had done before its stretch: the latest rank of that, for each other one.
    With `never`, what somebody never delivers comes after everything else."""
    members = first.shape[1]
    latest = np.full((members, members), BEFORE, np.int64)
    for m in range(first.shape[0]):
        mixed = False
        for p in range(members):
            if first[m, p] != first[m, 0] or last[m, p] != first[m, p]:
                mixed = True
        if not mixed:
            continue
        for p in range(members):
            if first[m, p] == BEFORE:
                for q in range(members):
                    if last[m, q] > latest[p, q] and (never or last[m, q] != NEVER):
                        latest[p, q] = last[m, q]
    return latest


@kernel
def gaps(
    done: Ints, turn: Ints, had: Ints, delivered: Ints, rank: Ints, gap: Bools, crossed: Bools
) -> None:
    """Along what one member delivered, marks in `gap` who delivered an own message without
    something that this one had by then, and in `crossed` the own messages that somebody delivered
    before something that this one had by then. `had` and `delivered`: see `had_before`, with and
    without what somebody never delivers."""
    members = rank.shape[1]
    latest = had.copy()
    real = delivered.copy()
    for i in range(len(done)):
        n = done[i]
        if n < 0:
            continue
        if turn[n] == OWN:
            behind = False
            for q in range(members):
                if latest[q] > rank[n, q]:
                    behind = True
            if behind:
                for q in range(members):
                    if latest[q] > rank[n, q]:
                        gap[n, q] = True
                    if real[q] > rank[n, q]:
                        crossed[n] = True
        for q in range(members):
            at = rank[n, q]
            if at > latest[q]:
                latest[q] = at
            if at > real[q] and at != NEVER:
                real[q] = at


@kernel
def entangled(
    me: int, done: Ints, turn: Ints, had: Ints, first: Ints, chain: Ints, marked: Bools
) -> None:
    """Marks the own messages that come both before and after some other one."""
    members = first.shape[1]
    latest = had.copy()
    for i in range(len(done)):
        sending = done[i] < 0
        n = -1 - done[i] if sending else done[i]
        if turn[n] == OWN and not marked[n]:
            for q in range(members):
                limit = first[n, q]
                if q == me and not sending and chain[n, q] == limit + 1:
                    limit += 1  # delivered right after it was sent: nothing is in between
                if latest[q] > limit:
                    marked[n] = True
        for q in range(members):
            at = chain[n, q]
            if at > latest[q] and at != NEVER:
                latest[q] = at


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
            rows[i, p] = at
            highest[i, p] = BEFORE if at == NEVER else at
            if i > 0:
                highest[i, p] = max(highest[i, p], highest[i - 1, p])
    pairs, looked = 0, 0
    for j in range(early, size):
        i = j - 1
        while i >= 0:
            near, cross = False, False
            for p in range(members):
                if highest[i, p] > rows[j, p]:
                    near = True
                if rows[i, p] > rows[j, p] and rows[i, p] != NEVER:
                    cross = True
            if not near:
                break
            looked += 1
            if cross:
                pairs += 1
            i -= 1
        if looked > most:
            return pairs, False
    return pairs, True


@kernel
def partner(m: int, first: Ints, last: Ints) -> int:
    """The first message that comes both before and after m. They are in the order of names."""
    for n in range(first.shape[0]):
        if n == m:
            continue
        forth, back = False, False
        for p in range(first.shape[1]):
            if last[n, p] != NEVER and first[m, p] < last[n, p]:
                forth = True
            if last[m, p] != NEVER and first[n, p] < last[m, p]:
                back = True
        if forth and back:
            return n
    return -1
