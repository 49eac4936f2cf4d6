"""Rows of a huge run's logs, entered into the tables of a window; see `kernels.window`."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import DELIVER, NEVER, SEND
from ordercast.pipeline.kernels.kernel import Ints, kernel

__all__ = [
    "AFTER",
    "BEFORE",
    "EARLY",
    "LATE",
    "NOT_OWN",
    "OWN",
    "end_row",
    "enter",
    "first_row",
    "outside",
]

BEFORE = -(2**30)
AFTER = 2**30
EARLY, OWN, LATE = -1, 0, 1
NOT_OWN = -1


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
    stamp: Ints,
    needs: Ints,
    used: int,
    done: Ints,
) -> tuple[int, int]:
    """Enters some of a member's rows, one piece after the other, into the tables; and into `done`
    what it did there, as messages: those that it delivered as they are, those that it sent as
    -1 - m. Returns how many they are, and how many rows of `needs` are used by now.

    `counted` is what it had delivered of each origin and, at last, sent; and then, what it has. A
    row of `needs` is what it had delivered when it sent some own message, and `stamp` says of each
    one which row: messages in a row, with no delivery in between, share it. The other tables may be
    empty: then they are left alone.
    """
    with_ranks = len(rank) > 0
    members = len(floor)
    before = 0
    first = np.empty(members, np.int64)
    for o in range(members):
        before += counted[o]
        first[o] = start[o] - floor[o] - 1
    links = before + counted[members]
    many = 0
    fresh = True
    for row in range(len(kind)):
        if kind[row] == DELIVER:
            fresh = True
            o, n = origin[row], number[row]
            m = first[o] + n
            if with_ranks:
                rank[m, me] = before - base
                chain[m, me] = links - chain_base
            counted[o] = n
            before += 1
            links += 1
            done[many] = m
            many += 1
        elif kind[row] == SEND:
            m = first[me] + number[row]
            if with_ranks:
                sends[m] = links - chain_base
                if chain[m, me] == AFTER and rank[m, me] == NEVER:
                    chain[m, me] = links - chain_base
            if turn[m] == OWN:
                if fresh:
                    for o in range(members):
                        needs[used, o] = counted[o]
                    used += 1
                    fresh = False
                stamp[m] = used - 1
            counted[members] += 1
            links += 1
            done[many] = -1 - m
            many += 1
    return many, used
