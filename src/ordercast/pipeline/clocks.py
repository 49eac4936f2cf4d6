"""Vector clocks of one run, rebuilt from what its processes sent and delivered. Numpy, no Spark.

A run's messages are numbered by (origin, send position), so each origin's messages lie in a row:
origin k's are start[k] .. start[k+1]-1, and a *count* c of origin k means the first c of them.
What happened before a send is then one count per origin, because whoever happens after a message
happens after all that its origin sent earlier. A clock counts the message itself too.

    direct[n]   what n's sender had sent and delivered itself when it sent n
    clock[n]    = max of clock[m] over every m that direct[n] counts: the same, made transitive

A corrupt log can hold cycles (a delivery before its send). The clock is the least fixpoint of the
line above and exists all the same: clock[n] counts m iff send(n) can be reached from send(m).
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Ints", "closure", "direct_knowledge"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_ROWS_AT_ONCE = 1 << 16


def direct_knowledge(start: Ints, sent_at: Ints, heard: list[tuple[Ints, Ints]]) -> Ints:
    """One row per message, one count per origin.

    `heard[k]` are the deliveries of the process that is origin k: positions, and the messages.
    """
    origins = len(start) - 1
    chain = np.repeat(np.arange(origins), np.diff(start))
    direct = np.zeros((len(sent_at), origins), np.int64)
    for k, (position, message) in enumerate(heard):
        mine = slice(start[k], start[k + 1])
        following = np.searchsorted(sent_at[mine], position)
        told = following < start[k + 1] - start[k]  # what comes after the last send binds nothing
        source = chain[message[told]]
        count = message[told] - start[source] + 1
        np.maximum.at(direct, (start[k] + following[told], source), count)
        direct[mine] = np.maximum.accumulate(direct[mine], axis=0)
        own = np.arange(1, start[k + 1] - start[k] + 1)
        direct[mine, k] = np.maximum(direct[mine, k], own)
    return direct


def closure(direct: Ints, start: Ints) -> Ints:
    """The clocks. Three ways, each only where the one before it does not do.

    Broadcasts that arrived in causal order know their whole past at first hand: one look. Else one
    walk in causal order. Else there is a cycle, and knowledge spreads until nothing changes.
    """
    if _is_closed(direct, start):
        return direct
    clock = direct.copy()
    if not _advance(clock, direct, start):
        while _spread(clock, start):
            pass
    return clock


def _is_closed(direct: Ints, start: Ints) -> bool:
    for k in range(len(start) - 1):
        for row in range(0, len(direct), _ROWS_AT_ONCE):
            part = direct[row : row + _ROWS_AT_ONCE]
            knows = part[part[:, k] > 0]
            if (direct[start[k] + knows[:, k] - 1] > knows).any():
                return False
    return True


def _advance(clock: Ints, direct: Ints, start: Ints) -> bool:
    """Fills in the clocks origin by origin, each as far as those it heard from have come.

    False if some could not be reached: they are on a cycle, or behind one.
    """
    first = start[:-1]
    size = np.diff(start)
    done = np.zeros_like(size)
    parked: list[list[tuple[int, int]]] = [[] for _ in size]
    ready = deque(range(len(size)))
    while ready:
        k = ready.popleft()
        while done[k] < size[k]:
            n = first[k] + done[k]
            needed = direct[n].copy()
            needed[k] -= 1  # itself
            lacking = np.flatnonzero(needed > done)
            if lacking.size:
                parked[lacking[0]].append((int(needed[lacking[0]]), k))
                break
            past = (first + needed - 1)[needed > 0]
            if past.size:
                np.maximum(clock[n], clock[past].max(axis=0), out=clock[n])
            done[k] += 1
        waiting, parked[k] = parked[k], []
        for count, waiter in waiting:
            if count <= done[k]:
                ready.append(waiter)
            else:
                parked[k].append((count, waiter))
    return bool((done == size).all())


def _spread(clock: Ints, start: Ints) -> bool:
    """Everyone learns what the latest it knows of each origin knew; did anyone learn anything?

    Knowledge travels twice as far in each round, so a chain of any length takes few rounds.
    """
    before = clock.copy()
    for k in range(len(start) - 1):
        knows = np.flatnonzero(clock[:, k])
        clock[knows] = np.maximum(clock[knows], clock[start[k] + clock[knows, k] - 1])
    return bool((clock != before).any())
