"""Chains: the messages that each process met, in its order.

For total order what it delivered; for synchronous order also what it sent, and then a message may
be there twice, at its send and at its delivery. A message is one point in all of them.

    first, last  (message × member) its ranks in each member's chain, or NEVER
    m before n   in some chain, first[m] < last[n]

The ranks may be of some members only (`ranks`), where there are many.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import NEVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints, part

__all__ = ["chain_of", "edges", "entangled", "ranks"]


@part
def chain_of(
    kind: Ints, message: Ints, starts: Ints, fresh: Bools, with_sends: bool
) -> tuple[Ints, Ints]:
    """All members' chains one after the other, and where each begins."""
    members = len(starts) - 1
    entries = np.empty(len(kind), np.int32)
    begin = np.zeros(members + 1, np.int64)
    size = 0
    for p in range(members):
        begin[p] = size
        for row in range(starts[p], starts[p + 1]):
            m = message[row]
            if not fresh[row] and (kind[row] != SEND or not with_sends):
                continue
            if size > begin[p] and entries[size - 1] == m:
                continue
            entries[size] = m
            size += 1
    begin[members] = size
    return entries[:size], begin


@part
def ranks(entries: Ints, begin: Ints, low: int, first: Ints, last: Ints) -> None:
    """Fills in each message's ranks in the chains of members from `low` on."""
    first[:] = NEVER
    last[:] = NEVER
    for p in range(low, min(low + first.shape[1], len(begin) - 1)):
        for i in range(begin[p], begin[p + 1]):
            m = entries[i]
            if first[m, p - low] == NEVER:
                first[m, p - low] = i - begin[p]
            last[m, p - low] = i - begin[p]


@part
def edges(begin: Ints) -> int:
    total = 0
    for p in range(len(begin) - 1):
        total += max(begin[p + 1] - begin[p] - 1, 0)
    return total


@part
def entangled(entries: Ints, begin: Ints, first: Ints, last: Ints, marked: Bools) -> int:
    """Marks each message that comes both before and after one other, as the chains that the ranks
    are of show; returns how many do that were not marked before."""
    members = first.shape[1]
    latest = np.empty(members, np.int64)
    many = 0
    for p in range(len(begin) - 1):
        if begin[p] == begin[p + 1]:
            continue
        latest[:] = -1
        for i in range(begin[p], begin[p + 1]):
            n = entries[i]
            found = False
            for q in range(members):
                if latest[q] > first[n, q]:
                    found = True
                if last[n, q] != NEVER:
                    latest[q] = max(latest[q], last[n, q])
            if found and not marked[n]:
                marked[n] = True
                many += 1
    return many
