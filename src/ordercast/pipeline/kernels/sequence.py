"""A window of a huge run along the reference's own order; see `kernels.window`."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.entering import BEFORE, EARLY
from ordercast.pipeline.kernels.index import NEVER
from ordercast.pipeline.kernels.kernel import Ints, kernel

__all__ = ["crossings", "knots"]


@kernel
def knots(
    sequence: Ints,
    origins: Ints,
    turn: Ints,
    rank: Ints,
    last: Ints,
    with_sends: bool,
    which: Ints,
) -> tuple[int, int]:
    """How many knots end in this window; `sequence` is the reference's order of its messages.
    Where no knot is, each message is one by itself, as it were: in `which`, if there is room, those
    are counted too, one number for each message. Returns how many of those end here as well.

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
    since, found, ended = 0, 0, 0
    for p in range(members):
        if highest[p] >= 0:
            since = 1  # it began in an earlier window
    for i in range(len(sequence)):
        m = sequence[i]
        since += 1
        if len(which) > 0:
            which[i] = ended
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
            ended += 1
            since = 0
    return found, ended


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
