"""Skew heaps of rows: many at once, all of them in the same few arrays.

A row is in one heap at most. `key` orders a heap, the row itself breaks ties: who came first, goes
first. An empty heap is -1. Merging is all there is to it; it takes a logarithmic number of steps on
average, and no memory.
"""

from __future__ import annotations

from ordercast.pipeline.kernels.kernel import Ints, inner

__all__ = ["EMPTY", "merged", "popped", "pushed"]

EMPTY = -1


@inner
def merged(a: int, b: int, key: Ints, left: Ints, right: Ints) -> int:
    """The root of both heaps together."""
    if a == EMPTY:
        return b
    if b == EMPTY:
        return a
    if key[b] < key[a] or (key[b] == key[a] and b < a):
        a, b = b, a
    root = a
    while True:
        rest = right[a]
        right[a] = left[a]
        if rest == EMPTY:
            left[a] = b
            return root
        if key[b] < key[rest] or (key[b] == key[rest] and b < rest):
            rest, b = b, rest
        left[a] = rest
        a = rest


@inner
def pushed(root: int, row: int, key: Ints, left: Ints, right: Ints) -> int:
    """The root of the heap with a row more."""
    left[row] = EMPTY
    right[row] = EMPTY
    return merged(root, row, key, left, right)


@inner
def popped(root: int, key: Ints, left: Ints, right: Ints) -> int:
    """The root of the heap without its first row, which was its root."""
    return merged(left[root], right[root], key, left, right)
