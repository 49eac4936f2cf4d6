"""Who took part in a run, and who sent and delivered what when.

Rows are the run's events, sorted by process and position. A message is known by its index, see
`messages`.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.kernel import Bools, Ints, part

__all__ = [
    "ADDRESSED",
    "CRASH",
    "DELIVER",
    "LEARN",
    "NEVER",
    "NONE",
    "OTHER",
    "RECEIVE",
    "RECOVER",
    "SEND",
    "UNHEARD_OF",
    "addresses",
    "at_a_time",
    "bounds",
    "chains",
    "correct",
    "first_deliveries",
    "fresh_rows",
    "members",
    "place",
]

SEND, DELIVER, CRASH, RECOVER, RECEIVE, OTHER, UNHEARD_OF = 0, 1, 2, 3, 4, 5, 6
LEARN = 7
"""Not in any log: from here on a process knows of a message, by a way that is not in the rows."""
NEVER = 2**31 - 1
"""Instead of the row of a delivery: there is none."""
NONE = -1
"""Instead of a message: the row has none."""

ADDRESSED = 1
"""What is known of a process and a message is one bit each; see `order` for the others."""


@part
def members(process: Ints, size: int) -> Ints:
    """The processes' numbers. `size` is what the manifest names, or -1: then, those seen."""
    if size >= 0:
        named = np.empty(size, np.int32)
        for p in range(size):
            named[p] = p
        return named
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


@part
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


@part
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


@part
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


@part
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


@part
def at_a_time(messages: int, members: int, rows: int, cells: Ints) -> int:
    """How many members to look at at a time, so that tables of messages × members stay moderate:
    `cells`, see `run`."""
    most = max(max(cells[0], cells[1] * rows) // max(messages + members, 1), 1)
    times = max(-(-members // most), 1)
    return max(int(-(-members // times)), 1)


@part
def addresses(
    ids: Ints, sent: Ints, everyone: Bools, dest_start: Ints, dest: Ints, marks: Ints, low: int
) -> None:
    """Sets ADDRESSED for every member from `low` on that a message was sent to."""
    width = marks.shape[1]
    for m in range(len(sent)):
        row = sent[m]
        if everyone[row]:
            for p in range(width):
                marks[m, p] |= ADDRESSED
        else:
            for i in range(dest_start[row], dest_start[row + 1]):
                p = place(ids, dest[i]) - low
                if 0 <= p < width:
                    marks[m, p] |= ADDRESSED


@part
def fresh_rows(kind: Ints, message: Ints, starts: Ints, messages: int) -> tuple[Bools, int, int]:
    """Which rows are the first delivery of a message there, how many, and the first row that
    repeats an earlier one (or -1)."""
    fresh = np.zeros(len(kind), np.bool_)
    latest = np.full(messages, -1, np.int32)  # member that has delivered it
    count, repeated = 0, -1
    for p in range(len(starts) - 1):
        for row in range(starts[p], starts[p + 1]):
            if kind[row] == DELIVER:
                if latest[message[row]] != p:
                    latest[message[row]] = p
                    fresh[row] = True
                    count += 1
                elif repeated < 0:
                    repeated = row
    return fresh, count, repeated


@part
def first_deliveries(message: Ints, starts: Ints, fresh: Bools, first: Ints, low: int) -> None:
    """Fills in `first` (message × member, from `low` on: the row of the first delivery)."""
    for p in range(low, min(low + first.shape[1], len(starts) - 1)):
        for row in range(starts[p], starts[p + 1]):
            if fresh[row]:
                first[message[row], p - low] = row
