"""A piece of one process's log in one look: what it sent and delivered, as runs of numbers.

A healthy broadcast delivers each origin's messages one after the other, so that a piece of any
length is one run per origin; every omission, repetition or inversion adds a few.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import CRASH, DELIVER, RECEIVE, RECOVER, SEND, UNHEARD_OF
from ordercast.pipeline.kernels.kernel import Ints, kernel

__all__ = [
    "ADJACENT",
    "BROKEN",
    "DELIVERED",
    "DOWN",
    "FINE",
    "FIRST",
    "HEAD",
    "HEALTHY",
    "LAST",
    "LAST_POSITION",
    "NOTHING",
    "ORIGIN",
    "RAGGED",
    "SENT",
    "TAIL",
    "UNSORTED",
    "WIDTH",
    "scan",
    "without_message",
]

# What is known of a piece, beside the runs.
HEALTHY = 0
"""FINE, or else what is wrong with it, and then the rest means nothing."""
LAST_POSITION = 1
SENT = 2
"""How many rows are sends …"""
DELIVERED = 3
"""… and deliveries."""
ADJACENT = 4
"""How often it delivered a message of its own right after sending it."""
HEAD = 5
"""Of its first send or delivery: if it is a delivery of its own, that message's number; else 0, or
NOTHING if there is none."""
TAIL = 6
"""Of its last send or delivery: if it is a send, that message's number; else 0 or NOTHING."""
DOWN = 7
"""1 after a crash, 0 after a recovery, -1 if there was neither."""
WIDTH = 8

NOTHING = -1
FINE, UNSORTED, BROKEN, RAGGED = 0, 1, 2, 3
"""RAGGED: there are more runs than there is room for."""

# The fields of a run. What was sent has the number of members for an origin.
ORIGIN, FIRST, LAST = 0, 1, 2


@kernel
def scan(
    me: int,
    members: int,
    position: Ints,
    kind: Ints,
    origin: Ints,
    number: Ints,
    known: Ints,
    runs: Ints,
) -> int:
    """Fills in `known` and `runs`, which are in the order of their beginnings; returns how many."""
    known[:] = 0
    known[DOWN] = -1
    last = np.full(members + 1, -2, np.int64)
    which = np.full(members + 1, -1, np.int64)
    many = 0
    previous = np.int64(-1)
    head, tail = NOTHING, NOTHING
    sent, delivered, adjacent = 0, 0, 0
    for row in range(len(kind)):
        if position[row] <= previous:
            known[HEALTHY] = UNSORTED
            return 0
        previous = position[row]
        o, n = origin[row], number[row]
        if kind[row] == DELIVER:
            if o < 0 or o >= members or n < 1:
                known[HEALTHY] = BROKEN
                return 0
            if head == NOTHING:
                head = n if o == me else 0
            adjacent += o == me and tail == n
            tail = 0
            delivered += 1
        elif kind[row] == SEND:
            if o != me or n < 1:
                known[HEALTHY] = BROKEN
                return 0
            head = 0 if head == NOTHING else head
            tail = n
            sent += 1
            o = members
        elif without_message(kind[row], o, n, known):
            continue
        else:
            return 0
        if n != last[o] + 1:
            if many == len(runs):
                known[HEALTHY] = RAGGED
                return 0
            _begin(runs, many, which, last, o, n)
            many += 1
        last[o] = n
    for o in range(members + 1):
        if which[o] >= 0:
            runs[which[o], LAST] = last[o]
    known[LAST_POSITION] = previous
    known[SENT], known[DELIVERED] = sent, delivered
    known[ADJACENT], known[HEAD], known[TAIL] = adjacent, head, tail
    return many


@kernel
def without_message(kind: int, origin: int, number: int, known: Ints) -> bool:
    """Notes a row that is neither a send nor a delivery; returns whether it is sound."""
    if kind == RECEIVE:
        sound = origin >= 0 and number >= 1
    else:
        sound = origin == -1 and number == -1 and kind != UNHEARD_OF
    if not sound:
        known[HEALTHY] = BROKEN
    elif kind == CRASH:
        known[DOWN] = 1
    elif kind == RECOVER:
        known[DOWN] = 0
    return sound


@kernel
def _begin(runs: Ints, many: int, which: Ints, last: Ints, origin: int, number: int) -> None:
    """Ends an origin's run, and begins the next."""
    if which[origin] >= 0:
        runs[which[origin], LAST] = last[origin]
    which[origin] = many
    runs[many, ORIGIN] = origin
    runs[many, FIRST] = number
