"""A piece of one process's log in one look, roughly: how far it has come, every so many rows."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels import scan
from ordercast.pipeline.kernels.index import DELIVER, SEND
from ordercast.pipeline.kernels.kernel import Ints, kernel
from ordercast.pipeline.kernels.scan import (
    BROKEN,
    DELIVERED,
    DOWN,
    HEALTHY,
    LAST_POSITION,
    RAGGED,
    SENT,
    UNSORTED,
    without_message,
)

__all__ = ["FIRST_SENT", "LAST_SENT", "WIDTH", "first_beyond", "sketch"]

# What is known of a piece beside what `scan` tells: the numbers of its first and last sends, or 0.
FIRST_SENT = scan.WIDTH
LAST_SENT = scan.WIDTH + 1
WIDTH = scan.WIDTH + 2


@kernel
def sketch(
    me: int,
    position: Ints,
    kind: Ints,
    origin: Ints,
    number: Ints,
    last: Ints,
    every: int,
    known: Ints,
    most: Ints,
    least: Ints,
) -> None:
    """`last`: what is beyond these numbers was never sent, and says nothing of how far one is.

    Fills in `known` (see `scan`), and for each stretch of `every` rows

    most   (stretch × member) the greatest number sent or delivered so far, or 0
    least  (stretch × member) the smallest number delivered in this stretch, or what is there
    """
    known[:] = 0
    known[DOWN] = -1
    members = most.shape[1]
    so_far = np.zeros(members, np.int64)
    previous, sent = np.int64(-1), np.int64(0)
    for row in range(len(kind)):
        if position[row] <= previous:
            known[HEALTHY] = UNSORTED
            return
        previous = position[row]
        o, n = origin[row], number[row]
        stretch = row // every
        if kind[row] == DELIVER:
            if o < 0 or o >= members or n < 1:
                known[HEALTHY] = BROKEN
                return
            known[DELIVERED] += 1
            if n <= last[o]:
                so_far[o] = max(so_far[o], n)
                least[stretch, o] = min(least[stretch, o], n)
        elif kind[row] == SEND:
            if o != me or n < 1:
                known[HEALTHY] = BROKEN
                return
            if n <= sent:
                known[HEALTHY] = RAGGED
                return
            if known[SENT] == 0:
                known[FIRST_SENT] = n
            known[SENT] += 1
            sent = n
            so_far[me] = max(so_far[me], n)
        elif not without_message(kind[row], o, n, known):
            return
        most[stretch] = so_far
    known[LAST_POSITION] = previous
    known[LAST_SENT] = sent


@kernel
def first_beyond(
    me: int, kind: Ints, origin: Ints, number: Ints, upto: Ints, last: Ints, sent: int
) -> tuple[int, int]:
    """The first row that sends or delivers a message beyond these numbers, though not beyond its
    sender's last; and what the process has sent before that row, if it was `sent` at first."""
    for row in range(len(kind)):
        if kind[row] == SEND:
            if number[row] > upto[me]:
                return row, sent
            sent = number[row]
        elif kind[row] == DELIVER and upto[origin[row]] < number[row] <= last[origin[row]]:
            return row, sent
    return len(kind), sent
