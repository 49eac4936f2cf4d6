"""A piece of one process's log in one look: is it what a healthy broadcast leaves behind?

Healthy: positions rise, what the process sent is numbered one after the other, and so is what it
delivered of each origin. Then a few numbers per piece say which messages are in it.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import CRASH, DELIVER, RECEIVE, RECOVER, SEND, UNHEARD_OF
from ordercast.pipeline.kernels.kernel import Ints, kernel

__all__ = [
    "ADJACENT",
    "DELIVERED",
    "DOWN",
    "FINE",
    "HEAD",
    "HEALTHY",
    "LAST_POSITION",
    "SENT",
    "SENT_FIRST",
    "TAIL",
    "UNSORTED",
    "WIDTH",
    "scan",
]

# What is known of a piece, beside the numbers that it delivered of each origin.
HEALTHY = 0
"""FINE, or else UNSORTED or BROKEN, and then the rest means nothing."""
LAST_POSITION = 1
SENT = 2
"""How many messages it sent."""
SENT_FIRST = 3
"""The number of the first of them."""
DELIVERED = 4
"""How many messages it delivered."""
ADJACENT = 5
"""How often it delivered a message of its own right after sending it."""
HEAD = 6
"""If its first send or delivery is a delivery of its own message, that message's number."""
TAIL = 7
"""If its last send or delivery is a send, that message's number."""
DOWN = 8
"""1 after a crash, 0 after a recovery, -1 if there was neither."""
WIDTH = 9

FINE, UNSORTED, BROKEN = 0, 1, 2


@kernel
def scan(
    me: int,
    members: int,
    position: Ints,
    kind: Ints,
    origin: Ints,
    number: Ints,
    known: Ints,
    low: Ints,
    high: Ints,
) -> None:
    """Fills in `known`, and for each origin the number before the first and the last delivered."""
    known[:] = 0
    known[HEALTHY] = FINE
    known[DOWN] = -1
    low[:] = -1
    high[:] = -1
    previous, last_sent = np.int64(-1), np.int64(0)
    begun = False
    for row in range(len(kind)):
        if position[row] <= previous:
            known[HEALTHY] = UNSORTED
            return
        previous = position[row]
        if kind[row] == DELIVER:
            o, n = origin[row], number[row]
            if o < 0 or o >= members or n < 1 or (high[o] >= 0 and n != high[o] + 1):
                known[HEALTHY] = BROKEN
                return
            if high[o] < 0:
                low[o] = n - 1
            high[o] = n
            known[DELIVERED] += 1
            if o == me:
                if not begun:
                    known[HEAD] = n
                elif known[TAIL] == n:
                    known[ADJACENT] += 1
            known[TAIL] = 0
            begun = True
        elif kind[row] == SEND:
            n = number[row]
            if origin[row] != me or n < 1 or (last_sent > 0 and n != last_sent + 1):
                known[HEALTHY] = BROKEN
                return
            if last_sent == 0:
                known[SENT_FIRST] = n
            last_sent = n
            known[SENT] += 1
            known[TAIL] = n
            begun = True
        elif kind[row] == RECEIVE:
            if origin[row] < 0 or number[row] < 1:
                known[HEALTHY] = BROKEN
        else:
            if origin[row] != -1 or number[row] != -1 or kind[row] == UNHEARD_OF:
                known[HEALTHY] = BROKEN
            if kind[row] == CRASH:
                known[DOWN] = 1
            elif kind[row] == RECOVER:
                known[DOWN] = 0
    known[LAST_POSITION] = previous
