"""The walk along sorted messages that sees whether each comes after all that it knows.

    known = 0 for every origin
    for each message m with stamp V, in the order of the data set:
        m is out of order if known[origin of m] >= number of m    (someone before m knew it)
        known = max(known, V)

Maxima can be taken piece by piece, so each part of the data set is walked on its own, from what is
known before it.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel

__all__ = ["compare_stamps", "find", "is_below", "walk"]


@kernel
def walk(starts: Ints, slots: Ints, values: Ints, own: Ints, numbers: Ints, known: Ints) -> Bools:
    """Which messages come after one that knows them. `known` is brought up to date.

    Message i has entries starts[i] to starts[i+1]: slots (an origin of a group, rising) and values;
    own[i] is its own slot, where the value is numbers[i].
    """
    late = np.zeros(len(own), np.bool_)
    for i in range(len(own)):
        late[i] = known[own[i]] >= numbers[i]
        for entry in range(starts[i], starts[i + 1]):
            known[slots[entry]] = max(known[slots[entry]], values[entry])
    return late


@kernel
def is_below(starts: Ints, slots: Ints, values: Ints, low: int, high: int) -> bool:
    """Is no entry of message `low` larger than that of message `high`?"""
    entry, end = starts[high], starts[high + 1]
    for mine in range(starts[low], starts[low + 1]):
        while entry < end and slots[entry] < slots[mine]:
            entry += 1
        other = values[entry] if entry < end and slots[entry] == slots[mine] else 0
        if values[mine] > other:
            return False
    return True


@kernel
def find(own: Ints, numbers: Ints, by_name: Ints, slot: int, number: int) -> int:
    """The row of a message; -1 if it is not here, and -2 if it can only be in a part before."""
    low, high = 0, len(by_name)
    while low < high:
        middle = (low + high) // 2
        row = by_name[middle]
        if own[row] < slot or (own[row] == slot and numbers[row] < number):
            low = middle + 1
        else:
            high = middle
    if low < len(by_name) and own[by_name[low]] == slot and numbers[by_name[low]] == number:
        return int(by_name[low])
    return -1 if low > 0 and own[by_name[low - 1]] == slot else -2


@kernel
def compare_stamps(
    starts: Ints, slots: Ints, values: Ints, own: Ints, numbers: Ints, by_name: Ints, last: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Is each stamp above those of all messages that it knows?

    Only what it knows and its origin's message just before it did not is compared: the rest
    follows from that one, which it is compared with.

    in: by_name: rows by own slot and number; last: -1 for each slot
    out: the rows that ask for a message of another part, its slot, its number; and: how many
    stamps were compared, the first row whose stamp is wrong, and the row that it contradicts
    """
    asking, asked, wanted = [0][:0], [0][:0], [0][:0]
    told = np.array([0, -1, -1])
    for i in range(len(own)):
        before = last[own[i]]
        if before >= 0 and numbers[before] != numbers[i] - 1:
            before = -1
        last[own[i]] = i
        old = starts[before] if before >= 0 else 0
        end = starts[before + 1] if before >= 0 else 0
        for entry in range(starts[i], starts[i + 1]):
            slot, number = slots[entry], values[entry]
            while old < end and slots[old] < slot:
                old += 1
            if slot == own[i]:
                number -= 1
            elif old < end and slots[old] == slot and values[old] == number:
                continue
            if number == 0:
                continue
            row = find(own, numbers, by_name, slot, number)
            if row >= 0:
                told[0] += 1
                if told[1] < 0 and not is_below(starts, slots, values, row, i):
                    told[1], told[2] = i, row
            elif row == -2:
                asking.append(i)
                asked.append(slot)
                wanted.append(number)
    return np.array(asking), np.array(asked), np.array(wanted), told
