"""Which messages there were in a run: the index of each, by which everything else knows it.

First those that were sent, chain by chain (a chain is what one process sent, in its order), then
those that somebody delivered and nobody sent, by origin and number.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.index import DELIVER, LEARN, NONE, place
from ordercast.pipeline.kernels.kernel import Bools, Ints, part
from ordercast.pipeline.kernels.sorting import by_name, smaller

__all__ = ["messages"]


@part
def messages(
    kind: Ints, origin: Ints, number: Ints, ids: Ints, sent: Ints, base: Ints
) -> tuple[Ints, Ints, Ints]:
    """For each row its message's index (or NONE); and all messages' origins and numbers."""
    numbers, by_number, dense = _numbered(origin, number, sent, base)
    found = np.full(len(kind), NONE, np.int32)
    for m in range(len(sent)):
        found[sent[m]] = m
    lost = 0
    for row in range(len(kind)):
        if kind[row] != DELIVER and kind[row] != LEARN:
            continue
        p = place(ids, origin[row])
        at = -1
        if p >= 0:
            at = _among(numbers, number[row], base[p], base[p + 1], dense[p])
        if at >= 0:
            found[row] = by_number[at]
        else:
            lost += 1
    u_origin, u_number = _lost(kind, origin, number, lost, found, len(sent))
    total = len(sent)
    all_origins = np.empty(total + len(u_origin), np.int32)
    all_numbers = np.empty(total + len(u_origin), np.int64)
    for m in range(total):
        all_origins[m] = origin[sent[m]]
        all_numbers[m] = number[sent[m]]
    for m in range(len(u_origin)):
        all_origins[total + m] = u_origin[m]
        all_numbers[total + m] = u_number[m]
    return found, all_origins, all_numbers


@part
def _numbered(origin: Ints, number: Ints, sent: Ints, base: Ints) -> tuple[Ints, Ints, Bools]:
    """What each member sent, by number: the numbers, and whose they are as messages; and for each
    member whether they follow one upon the other."""
    numbers = np.empty(len(sent), np.int64)
    by_number = np.empty(len(sent), np.int64)
    dense = np.ones(len(base) - 1, np.bool_)
    for p in range(len(dense)):
        first, last = base[p], base[p + 1]
        rising = True
        for m in range(first, last):
            value = number[sent[m]]
            numbers[m] = value
            by_number[m] = m
            if m > first and value <= numbers[m - 1]:
                rising = False
            if value - number[sent[first]] != m - first:
                dense[p] = False
        if not rising:
            rows = by_name(origin, number, sent[first:last].astype(np.int64))
            for i in range(last - first):
                numbers[first + i] = number[rows[i]]
                # Sends are in the order of their rows.
                by_number[first + i] = _among(sent, rows[i], first, last, False)
    return numbers, by_number, dense


@part
def _among(numbers: Ints, value: int, first: int, last: int, dense: bool) -> int:
    """Where in sorted numbers, from first to last, a value is; or -1."""
    if dense:
        offset = value - numbers[first] if first < last else -1
        return first + offset if 0 <= offset < last - first else -1
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low if low < last and numbers[low] == value else -1


@part
def _lost(
    kind: Ints, origin: Ints, number: Ints, count: int, found: Ints, total: int
) -> tuple[Ints, Ints]:
    """Gives the messages that somebody delivered and nobody sent, in `count` rows, their indices
    from `total` on; returns their origins and numbers."""
    rows = np.empty(count, np.int64)
    lost_origin = np.empty(count, np.int32)
    lost_number = np.empty(count, np.int64)
    i = 0
    for row in range(len(kind) if count > 0 else 0):
        if kind[row] == DELIVER and found[row] == NONE:
            rows[i], lost_origin[i], lost_number[i] = row, origin[row], number[row]
            i += 1
    u_origin, u_number = _strangers(count, lost_origin, lost_number)
    for i in range(count):
        low, high = 0, len(u_origin)
        while low < high:
            middle = (low + high) // 2
            if u_origin[middle] < lost_origin[i] or (
                u_origin[middle] == lost_origin[i] and u_number[middle] < lost_number[i]
            ):
                low = middle + 1
            else:
                high = middle
        found[rows[i]] = total + low
    return u_origin, u_number


@part
def _strangers(count: int, origin: Ints, number: Ints) -> tuple[Ints, Ints]:
    """The distinct messages among the first `count`, sorted: those that nobody sent."""
    order = by_name(origin, number, np.arange(count))
    distinct = 0
    for i in range(count):
        if i == 0 or smaller(origin, number, order[distinct - 1], order[i]):
            order[distinct] = order[i]
            distinct += 1
    u_origin = np.empty(distinct, np.int32)
    u_number = np.empty(distinct, np.int64)
    for i in range(distinct):
        u_origin[i] = origin[order[i]]
        u_number[i] = number[order[i]]
    return u_origin, u_number
