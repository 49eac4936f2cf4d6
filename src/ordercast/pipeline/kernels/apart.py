"""Messages that are set apart from the rest of a huge run, and the run without them.

Which ones they are is told origin by origin, as stretches of numbers from `low` to `high`; those of
origin o are from `start[o]` to `start[o + 1]`, and `before` says how many numbers are in the
stretches of that origin that come before. The other messages are regular, and are known by their
places among those of their origin, from 1.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.index import DELIVER, SEND
from ordercast.pipeline.kernels.kernel import Ints, kernel

__all__ = ["FIELDS", "KIND", "NEXT", "NUMBER", "ORIGIN", "POSITION", "PREVIOUS", "sight", "strip"]

# The fields of a row of a message that is set apart. After them: how many regular messages of each
# origin were delivered in the piece before it, and at last, how many were sent.
KIND, ORIGIN, NUMBER, POSITION = 0, 1, 2, 3
PREVIOUS = 4
"""Of the regular send or delivery before it: if it is a send, that message's number; else 0, or
NOTHING if there is none in the piece."""
NEXT = 5
"""Of the regular one after it: if it is a delivery of its own, that message's number; as above."""
FIELDS = 6


@kernel
def place(number: int, low: Ints, high: Ints, before: Ints, begin: int, end: int) -> int:
    """Of a regular number its place; of one that is set apart -1. Looks from `begin` to `end`."""
    first, last = begin, end
    while first < last:
        middle = (first + last) // 2
        if high[middle] < number:
            first = middle + 1
        else:
            last = middle
    if first < end and low[first] <= number:
        return -1
    if first == begin:
        return number
    return int(number - before[first - 1] - (high[first - 1] - low[first - 1] + 1))


@kernel
def strip(
    kind: Ints,
    origin: Ints,
    number: Ints,
    start: Ints,
    low: Ints,
    high: Ints,
    before: Ints,
    kept: Ints,
    places: Ints,
) -> int:
    """Fills in which rows are not of messages set apart, and for those of a send or a delivery the
    message's place. Returns how many rows they are."""
    many = 0
    for row in range(len(kind)):
        at = number[row]
        if kind[row] == SEND or kind[row] == DELIVER:
            o = origin[row]
            if start[o] < start[o + 1]:
                at = place(at, low, high, before, start[o], start[o + 1])
                if at < 0:
                    continue
        kept[many] = row
        places[many] = at
        many += 1
    return many


@kernel
def sight(
    me: int,
    members: int,
    position: Ints,
    kind: Ints,
    origin: Ints,
    number: Ints,
    start: Ints,
    low: Ints,
    high: Ints,
    before: Ints,
    known: Ints,
    rows: Ints,
) -> int:
    """Fills in the rows of messages set apart, as far as there is room, and returns how many there
    are; and corrects what is `known` of the piece, see `scan`, to what it is without them."""
    counted = np.zeros(members + 1, np.int64)
    known[s.ADJACENT] = 0
    head, tail = s.NOTHING, s.NOTHING
    many, waiting = 0, 0
    for row in range(len(kind)):
        delivery = kind[row] == DELIVER
        if not delivery and kind[row] != SEND:
            continue
        o, n = origin[row], number[row]
        if place(n, low, high, before, start[o], start[o + 1]) < 0:
            if many < len(rows):
                one = rows[many]
                one[KIND], one[ORIGIN], one[NUMBER] = kind[row], o, n
                one[POSITION], one[PREVIOUS], one[NEXT] = position[row], tail, s.NOTHING
                one[FIELDS:] = counted
            many += 1
            continue
        mine = n if delivery and o == me else 0
        while waiting < min(many, len(rows)):
            rows[waiting, NEXT] = mine
            waiting += 1
        if head == s.NOTHING:
            head = mine
        known[s.ADJACENT] += mine > 0 and tail == mine
        tail = 0 if delivery else n
        counted[o if delivery else members] += 1
    known[s.HEAD], known[s.TAIL] = head, tail
    return many
