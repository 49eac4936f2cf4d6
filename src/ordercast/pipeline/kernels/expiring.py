"""What becomes of messages that have waited too long: set aside, or released all the same.

    force(m)    for each thing that m needs, while it is not done:
                    the first held message of that slot that is not beyond it: force that one
                    there is none: the numbers up to there are missing, and nobody waits for them
                release m
    aside(m)    its number is settled: what comes after m need not wait for it

After each of them, whoever may go, goes. A number can be as great as it likes: what is missing is
an interval, and costs the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordercast.pipeline.kernels.heap import EMPTY, popped
from ordercast.pipeline.kernels.held import (
    EXPIRED,
    GAP,
    HELD,
    RELEASED,
    Fates,
    Ground,
    Messages,
    Waits,
)
from ordercast.pipeline.kernels.holding import let_go, may_go, settle, wait_on, waits_in, wake
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel

__all__ = ["Losses", "expire", "no_losses"]


class Losses(NamedTuple):
    """Each is a slot and the numbers from one to another."""

    lack: Ints
    """By row: what it went without; slot -1: nothing."""
    missing: Ints
    """All that is not waited for any more."""
    found: Ints
    """How many those are."""
    cursor: Ints
    wanted: Ints
    """As `Waits.at` and `Waits.key`, for rows that are being forced: the heaps must not see it."""
    stack: Ints
    on_stack: Bools


@kernel
def _note(table: Ints, at: int, slot: int, low: int, high: int) -> None:
    table[at, 0] = slot
    table[at, 1] = low
    table[at, 2] = high


@kernel
def _first_held(slot: int, messages: Messages, ground: Ground) -> int:
    """The row with the lowest number of this slot that is not done."""
    at = ground.upcoming[slot]
    if at == len(ground.by_number) or messages.slot[ground.by_number[at]] != slot:
        return EMPTY
    row: int = ground.by_number[at]
    return row


@kernel
def _force(
    first: int, messages: Messages, ground: Ground, waits: Waits, fates: Fates, losses: Losses
) -> int:
    """Releases a row, and before it what is held of its past; returns who may go because of it."""
    stack, on_stack, lack = losses.stack, losses.on_stack, losses.lack
    done = ground.done
    ready = EMPTY
    stack[0] = first
    on_stack[first] = True
    depth = 1
    while depth:
        row = stack[depth - 1]
        if may_go(row, messages, done, losses.cursor, losses.wanted):
            depth -= 1
            on_stack[row] = False
            outcome = RELEASED if lack[row, 0] == EMPTY else GAP
            ready = let_go(row, outcome, ready, messages, ground, waits, fates)
            continue
        slot, wanted = waits_in(row, messages, losses.cursor), losses.wanted[row]
        past = _first_held(slot, messages, ground)
        if past != EMPTY and messages.number[past] > wanted:
            past = EMPTY
        if past != EMPTY and not on_stack[past]:
            stack[depth] = past
            on_stack[past] = True
            depth += 1
            continue
        if lack[row, 0] == EMPTY:
            _note(lack, row, slot, done[slot] + 1, wanted)
        if past != EMPTY:
            losses.cursor[row] += 1  # it needs what needs it: no order would be right
            continue
        _note(losses.missing, losses.found[0], slot, done[slot] + 1, wanted)
        losses.found[0] += 1
        done[slot] = wanted
        settle(slot, messages, ground, fates.outcome)
        ready = wake(slot, ready, messages, ground, waits)
    return ready


@kernel
def _set_aside(
    row: int, messages: Messages, ground: Ground, waits: Waits, fates: Fates, losses: Losses
) -> int:
    may_go(row, messages, ground.done, losses.cursor, losses.wanted)
    lacking = waits_in(row, messages, losses.cursor)
    _note(losses.lack, row, lacking, ground.done[lacking] + 1, losses.wanted[row])
    fates.outcome[row] = EXPIRED
    fates.order[fates.gone[0]] = row
    fates.gone[0] += 1
    slot = messages.slot[row]
    settle(slot, messages, ground, fates.outcome)
    return wake(slot, EMPTY, messages, ground, waits)


@kernel
def expire(
    aside: bool,
    due: Bools,
    messages: Messages,
    ground: Ground,
    waits: Waits,
    fates: Fates,
    losses: Losses,
) -> None:
    """Does with held rows that are due what the policy says, the first come first."""
    rows = len(messages.slot)
    for row in range(rows):
        may_go(row, messages, ground.done, waits.at, waits.key)
        wait_on(row, messages, waits)
    for row in range(rows):
        if not due[row] or fates.outcome[row] != HELD:
            continue
        if aside:
            ready = _set_aside(row, messages, ground, waits, fates, losses)
        else:
            ready = _force(row, messages, ground, waits, fates, losses)
        while ready != EMPTY:
            next = ready
            ready = popped(next, waits.key, waits.left, waits.right)
            if fates.outcome[next] == HELD:
                ready = let_go(next, RELEASED, ready, messages, ground, waits, fates)


def no_losses(rows: int, entries: int) -> Losses:
    """Room for all that can be lost."""
    return Losses(
        lack=np.full((rows, 3), EMPTY, np.int64),
        missing=np.empty((rows + entries, 3), np.int64),
        found=np.zeros(1, np.int64),
        cursor=np.full(rows, -1, np.int64),
        wanted=np.zeros(rows, np.int64),
        stack=np.empty(rows, np.int64),
        on_stack=np.zeros(rows, np.bool_),
    )
