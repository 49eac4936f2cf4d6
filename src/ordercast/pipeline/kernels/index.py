"""Who took part in a run, which messages there were, and who delivered what when.

Rows are the run's events, sorted by process and position. A message is known by its index: first
those that were sent, chain by chain (a chain is what one process sent, in its order), then those
that somebody delivered and nobody sent, by origin and number.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel
from ordercast.pipeline.kernels.sorting import by_name, smaller

__all__ = [
    "ADDRESSED",
    "CRASH",
    "DELIVER",
    "NEVER",
    "NONE",
    "OTHER",
    "RECEIVE",
    "RECOVER",
    "REPEATED",
    "SEND",
    "UNHEARD_OF",
    "addresses",
    "bounds",
    "chains",
    "correct",
    "first_deliveries",
    "members",
    "messages",
    "place",
    "strangers",
]

SEND, DELIVER, CRASH, RECOVER, RECEIVE, OTHER, UNHEARD_OF = 0, 1, 2, 3, 4, 5, 6
NEVER = 2**31 - 1
"""Instead of the row of a delivery: there is none."""
NONE = -1
"""Instead of a message: the row has none."""

# What is known of a process and a message, one bit each.
ADDRESSED = 1
REPEATED = 128


@kernel
def members(process: Ints, size: int) -> Ints:
    """The processes' numbers. `size` is what the manifest names, or -1: then, those seen."""
    if size >= 0:
        return np.arange(size).astype(np.int32)
    count = 0
    for i in range(len(process)):
        if i == 0 or process[i] != process[i - 1]:
            count += 1
    ids = np.empty(count, np.int32)
    count = 0
    for i in range(len(process)):
        if i == 0 or process[i] != process[i - 1]:
            ids[count] = process[i]
            count += 1
    return ids


@kernel
def place(ids: Ints, process: int) -> int:
    """The index of a process among the members, or -1."""
    low, high = 0, len(ids)
    if process < high and ids[process] == process:
        return process
    while low < high:
        middle = (low + high) // 2
        if ids[middle] < process:
            low = middle + 1
        else:
            high = middle
    return low if low < len(ids) and ids[low] == process else -1


@kernel
def bounds(process: Ints, ids: Ints) -> Ints:
    """Where each member's rows begin; one more for the end of the last."""
    starts = np.zeros(len(ids) + 1, np.int64)
    row = 0
    for p in range(len(ids)):
        starts[p] = row
        while row < len(process) and process[row] == ids[p]:
            row += 1
    starts[len(ids)] = row
    return starts


@kernel
def correct(kind: Ints, starts: Ints) -> Bools:
    """Everyone but those whose last crash has no recovery after it."""
    up = np.ones(len(starts) - 1, np.bool_)
    for p in range(len(up)):
        for row in range(starts[p], starts[p + 1]):
            if kind[row] == CRASH:
                up[p] = False
            elif kind[row] == RECOVER:
                up[p] = True
    return up


@kernel
def chains(kind: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """The rows of all sends, and where in that list each member's begin (and the end)."""
    count = 0
    for row in range(len(kind)):
        if kind[row] == SEND:
            count += 1
    sent = np.empty(count, np.int32)
    base = np.zeros(len(starts), np.int64)
    count = 0
    for p in range(len(starts) - 1):
        base[p] = count
        for row in range(starts[p], starts[p + 1]):
            if kind[row] == SEND:
                sent[count] = row
                count += 1
    base[len(starts) - 1] = count
    return sent, base


@kernel
def strangers(count: int, origin: Ints, number: Ints) -> tuple[Ints, Ints]:
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


@kernel
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
            if value != number[sent[first]] + (m - first):
                dense[p] = False
        if not rising:
            rows = by_name(origin, number, sent[first:last].astype(np.int64))
            for i in range(last - first):
                numbers[first + i] = number[rows[i]]
                # Sends are in the order of their rows.
                by_number[first + i] = first + np.searchsorted(sent[first:last], rows[i])
    return numbers, by_number, dense


@kernel
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


@kernel
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
        if kind[row] != DELIVER:
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
    all_origins[total:] = u_origin
    all_numbers[total:] = u_number
    return found, all_origins, all_numbers


@kernel
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
    u_origin, u_number = strangers(count, lost_origin, lost_number)
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


@kernel
def addresses(
    ids: Ints, sent: Ints, everyone: Bools, dest_start: Ints, dest: Ints, marks: Ints
) -> None:
    """Sets ADDRESSED for every member that a message was sent to."""
    for m in range(len(sent)):
        row = sent[m]
        if everyone[row]:
            for p in range(len(ids)):
                marks[m, p] |= ADDRESSED
        else:
            for i in range(dest_start[row], dest_start[row + 1]):
                p = place(ids, dest[i])
                if p >= 0:
                    marks[m, p] |= ADDRESSED


@kernel
def first_deliveries(
    kind: Ints, message: Ints, starts: Ints, first: Ints, marks: Ints
) -> tuple[int, int]:
    """Fills in `first` (message × member: the row of the first delivery, or NEVER), sets REPEATED.

    Returns how many there are, and the first row that repeats an earlier one (or -1).
    """
    count = 0
    repeated = -1
    for p in range(len(starts) - 1):
        for row in range(starts[p], starts[p + 1]):
            if kind[row] == DELIVER:
                m = message[row]
                if first[m, p] == NEVER:
                    first[m, p] = row
                    count += 1
                else:
                    marks[m, p] |= REPEATED
                    if repeated < 0:
                        repeated = row
    return count, repeated
