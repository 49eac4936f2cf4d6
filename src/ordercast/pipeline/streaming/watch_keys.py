"""Pairs of numbers as one number, and what is first and which is which among them.

Positions of a process and numbers of an origin have hardly any holes. So there is mostly no need to
sort: a table with a place for each possible value does, in one pass.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.kernel import Ints

__all__ = ["first_of_each", "pair_keys", "ranks"]

_MOST = 1 << 62
_SPARSE = 4
"""How many times as many places as values a table may have."""
_SMALL = 1 << 12


def pair_keys(major: Ints, minor: Ints) -> tuple[Ints, int]:
    """A number for each pair, in the order of the pairs, and one that is greater than all of them.

    in: major: at least 0, and below 2**31
    """
    if not len(major):
        return np.empty(0, np.int64), 0
    rows = int(major.max()) + 1
    least, width = int(minor.min()), int(minor.max()) - int(minor.min()) + 1
    if rows * width >= _MOST:
        values, minor = np.unique(minor, return_inverse=True)
        least, width = 0, len(values)
    return major * width + (minor - least), rows * width


def first_of_each(keys: Ints, room: int) -> Ints:
    """Where each value comes first, by value.

    in: keys: from 0 to below room
    """
    if _sparse(keys, room):
        return np.unique(keys, return_index=True)[1]
    at = np.full(room, -1)
    at[keys[::-1]] = np.arange(len(keys))[::-1]  # the last one written stays: the first
    return at[at >= 0]


def ranks(keys: Ints, room: int) -> Ints:
    """How many different values are less than each.

    in: keys: from 0 to below room
    """
    if _sparse(keys, room):
        return np.unique(keys, return_inverse=True)[1]
    present = np.zeros(room, np.bool_)
    present[keys] = True
    return (np.cumsum(present) - 1)[keys]


def _sparse(keys: Ints, room: int) -> bool:
    return room > _SPARSE * len(keys) + _SMALL
