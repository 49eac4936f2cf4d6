"""What may be released, and in which order: messages that wait for others, row by row.

A row is a message of a slot (one origin in one group) with a number there. It may go once all that
it needs is done: the number before its own, and then its entries, each a slot and a number that
must be done there.

    a message arrives      it is released if it may go; otherwise it is held
    one is released        its slot is done up to it; whoever may go now, goes, the first come first

A held row waits for one thing at a time, the first that it lacks, in the heap of that slot, lowest
number first. So a release looks only at rows that waited for that very number, and at a row once
for each thing that it needs: never at all that is held.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.heap import EMPTY, popped, pushed
from ordercast.pipeline.kernels.held import (
    DUPLICATE,
    EXPIRED,
    RELEASED,
    Fates,
    Ground,
    Messages,
    Waits,
)
from ordercast.pipeline.kernels.kernel import Ints, inner, kernel

__all__ = ["arrive", "let_go", "may_go", "settle", "wait_on", "waits", "waits_in", "wake"]

_FAR = 2654435769
"""The golden ratio of 32 bits: multiples of it are spread evenly."""


@kernel
def waits(rows: int, slots: int) -> Waits:
    """Nobody waits yet."""
    return Waits(
        np.full(rows, -1, np.int64),
        np.zeros(rows, np.int64),
        np.full(rows, EMPTY, np.int64),
        np.full(rows, EMPTY, np.int64),
        np.full(slots, EMPTY, np.int64),
    )


@inner
def may_go(row: int, messages: Messages, done: Ints, at: Ints, key: Ints) -> bool:
    """Whether nothing is lacking."""
    if at[row] == -1:
        if done[messages.slot[row]] < messages.number[row] - 1:
            key[row] = messages.number[row] - 1
            return False
        at[row] = messages.start[row]
    for entry in range(at[row], messages.start[row + 1]):
        if done[messages.entry_slot[entry]] < messages.entry_number[entry]:
            at[row] = entry
            key[row] = messages.entry_number[entry]
            return False
    at[row] = messages.start[row + 1]
    return True


@inner
def waits_in(row: int, messages: Messages, at: Ints) -> int:
    """The slot of what the row lacks."""
    slot: int = messages.slot[row] if at[row] == -1 else messages.entry_slot[at[row]]
    return slot


@inner
def wait_on(row: int, messages: Messages, waits: Waits) -> None:
    """Puts a row that lacks something where it will be looked at again."""
    slot = waits_in(row, messages, waits.at)
    waits.heap[slot] = pushed(waits.heap[slot], row, waits.key, waits.left, waits.right)


@inner
def wake(slot: int, ready: int, messages: Messages, ground: Ground, waits: Waits) -> int:
    """Looks at the rows that waited for what is done now; `ready` with those that may go."""
    heap, key = waits.heap, waits.key
    while heap[slot] != EMPTY and key[heap[slot]] <= ground.done[slot]:
        row = heap[slot]
        heap[slot] = popped(row, key, waits.left, waits.right)
        if may_go(row, messages, ground.done, waits.at, key):
            key[row] = 0
            ready = pushed(ready, row, key, waits.left, waits.right)
        else:
            wait_on(row, messages, waits)
    return ready


@inner
def _end_of_interval(slot: int, number: int, ground: Ground) -> int:
    """Of the one that holds this number; `number - 1` if none does."""
    a, b = ground.first[slot], ground.first[slot + 1]
    end = b
    while a < b:
        middle = (a + b) // 2
        if ground.high[middle] < number:
            a = middle + 1
        else:
            b = middle
    last: int = number - 1
    if a < end and ground.low[a] <= number:
        last = ground.high[a]
    return last


@inner
def settle(slot: int, messages: Messages, ground: Ground, outcome: Ints) -> None:
    """Moves on over what was set aside."""
    done, by_number = ground.done, ground.by_number
    while True:
        done[slot] = _end_of_interval(slot, done[slot] + 1, ground)
        at = ground.upcoming[slot]
        while (
            at < len(by_number)
            and messages.slot[by_number[at]] == slot
            and messages.number[by_number[at]] <= done[slot]
        ):
            at += 1
        ground.upcoming[slot] = at
        if at == len(by_number) or messages.slot[by_number[at]] != slot:
            return
        row = by_number[at]
        if outcome[row] != EXPIRED or messages.number[row] != done[slot] + 1:
            return
        done[slot] += 1


@inner
def let_go(
    row: int,
    outcome: int,
    ready: int,
    messages: Messages,
    ground: Ground,
    waits: Waits,
    fates: Fates,
) -> int:
    """Releases a row; `ready` with those that may go because of it."""
    slot, group = messages.slot[row], messages.group[row]
    fates.outcome[row] = outcome
    fates.place[row] = ground.position[group]
    ground.position[group] += 1
    fates.order[fates.gone[0]] = row
    fates.gone[0] += 1
    ground.done[slot] = messages.number[row]
    settle(slot, messages, ground, fates.outcome)
    return wake(slot, ready, messages, ground, waits)


@inner
def _place(row: int, messages: Messages, table: Ints) -> int:
    """Where in the table of held rows the one with this slot and number is, or belongs."""
    slot, number = messages.slot, messages.number
    mask = len(table) - 1
    # Scattered: were numbers in a row in places in a row, those of two slots would sooner or later
    # lie over each other, and every look would go through all of them.
    name = (number[row] + slot[row] * _FAR) & 0x7FFFFFFF
    place: int = (name * _FAR >> 20) & mask
    while table[place] != EMPTY and (
        slot[table[place]] != slot[row] or number[table[place]] != number[row]
    ):
        place = (place + 1) & mask
    return place


@kernel
def arrive(old: int, messages: Messages, ground: Ground, waits: Waits, fates: Fates) -> None:
    """Takes rows in, one by one; those before `old` are held already."""
    rows = len(messages.slot)
    held = np.zeros(len(ground.done), np.int64)
    size = 16
    while size < 2 * rows:
        size *= 2
    table = np.full(size, EMPTY, np.int64)
    for row in range(rows):
        slot, number = messages.slot[row], messages.number[row]
        if row >= old:
            seen = number <= ground.done[slot] or _end_of_interval(slot, number, ground) >= number
            if seen or (held[slot] > 0 and table[_place(row, messages, table)] != EMPTY):
                fates.outcome[row] = DUPLICATE
                continue
        if not may_go(row, messages, ground.done, waits.at, waits.key):
            held[slot] += 1
            table[_place(row, messages, table)] = row
            wait_on(row, messages, waits)
            continue
        ready = let_go(row, RELEASED, EMPTY, messages, ground, waits, fates)
        while ready != EMPTY:
            next = ready
            ready = popped(next, waits.key, waits.left, waits.right)
            held[messages.slot[next]] -= 1
            ready = let_go(next, RELEASED, ready, messages, ground, waits, fates)
