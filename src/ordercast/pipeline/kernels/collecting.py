"""What is found in one run, added to what was found in others: rows are counted over all runs, and
messages become rows that tell of them."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.findings import EARLIER, FIFO, LATER, MESSAGE, PROCESS, ROW
from ordercast.pipeline.kernels.kernel import Ints, part

__all__ = ["add_cycles", "add_hits", "by_rows", "in_order", "with_room"]


@part
def add_hits(hits: Ints, many: int, run: int, found: Ints, low: int, about: Ints) -> int:
    """Adds those of one run; returns how many there are then."""
    for i in range(len(found)):
        hits[many, 0] = run
        hits[many, 1] = found[i, 0]
        hits[many, 2] = found[i, 1]
        hits[many, 3] = low + found[i, 2] if found[i, 2] >= 0 else -1
        hits[many, 4] = low + about[found[i, 3]]
        many += 1
    return many


@part
def in_order(hits: Ints, many: int) -> None:
    """By property, but for the orders of messages, which stay together; else as they are."""
    ordered = np.empty((many, 4), np.int64)
    at = 0
    for name in range(FIFO + 1):
        for i in range(many):
            if min(hits[i, 0], FIFO) == name:
                ordered[at] = hits[i]
                at += 1
    for i in range(many):
        hits[i] = ordered[i]


@part
def add_cycles(cycles: Ints, many: int, run: int, way: Ints, low: int, about: Ints) -> int:
    """Adds those of one run; returns how many steps there are then."""
    for i in range(len(way)):
        cycles[many, 0] = run
        cycles[many, 1] = way[i, 0]
        cycles[many, 2] = low + about[way[i, 1]]
        cycles[many, 3] = way[i, 2]
        many += 1
    return many


@part
def with_room(table: Ints, many: int, more: int) -> Ints:
    """The first `many` lines of a table that has room for some more."""
    size = len(table)
    while size < many + more:
        size *= 2
    if size == len(table):
        return table
    wider = np.empty((size, table.shape[1]), np.int64)
    for i in range(many):
        for k in range(table.shape[1]):
            wider[i, k] = table[i, k]
    return wider


@part
def by_rows(witness: Ints, low: int, about: Ints) -> None:
    """Messages become rows that tell of them, and rows are counted over all runs."""
    for name in range(11):
        if witness[name, PROCESS] < 0:
            continue
        for field in (MESSAGE, LATER):
            if witness[name, field] >= 0:
                witness[name, field] = low + about[witness[name, field]]
        for field in (ROW, EARLIER):
            if witness[name, field] >= 0:
                witness[name, field] += low
