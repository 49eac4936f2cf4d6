"""FIFO and causal order: no process delivers a message before one that came before it.

A fact is a first delivery of a message that is known and addressed to the process. It is broken if
the process lacks a predecessor at that time. In a log with holes, a predecessor that is delivered
later still proves it; one that never is does not (it may be in a hole), and leaves a doubt.

Causal order takes no vector clock of counts here. What a process must have delivered before n is
the latest, at that process, of the deliveries of everything in n's past; and that is one number
per process, which travels along the messages just as a clock would:

    at p, state[q] = the latest row at q of what p has in its past
    p sends n      n is broken at q if state[q] > first[n, q]; then n itself joins the state
    p delivers n   state = max(state, what n carries)
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.findings import (
    CAUSAL,
    CHECKED,
    DOUBTS,
    FIFO,
    LISTED,
    TOTAL_GAP_FREE,
    VIOLATIONS,
    listed,
    note,
)
from ordercast.pipeline.kernels.index import ADDRESSED, LEARN, NEVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints, part

__all__ = [
    "CAUSAL_BROKEN",
    "CAUSAL_DOUBT",
    "FIFO_BROKEN",
    "FIFO_DOUBT",
    "GAP",
    "GAP_DOUBT",
    "mark_causal",
    "mark_fifo",
    "tally",
]

FIFO_BROKEN, FIFO_DOUBT = 2, 4
CAUSAL_BROKEN, CAUSAL_DOUBT = 8, 16
GAP, GAP_DOUBT = 32, 64


@part
def mark_fifo(base: Ints, first: Ints, marks: Ints, complete: bool) -> bool:
    """Returns whether an addressed process never delivered something."""
    omitted = False
    members = first.shape[1]
    latest = np.empty(members, np.int64)
    lost = np.empty(members, np.bool_)
    for o in range(len(base) - 1):
        if base[o] == base[o + 1]:
            continue
        latest[:] = -1
        lost[:] = False
        for m in range(base[o], base[o + 1]):
            for p in range(members):
                if not marks[m, p] & ADDRESSED:
                    continue
                at = first[m, p]
                if at == NEVER:
                    lost[p] = True
                    omitted = True
                    continue
                if latest[p] > at or (lost[p] and complete):
                    marks[m, p] |= FIFO_BROKEN
                elif lost[p]:
                    marks[m, p] |= FIFO_DOUBT
                latest[p] = max(latest[p], at)
    return omitted


@part
def mark_causal(
    kind: Ints,
    message: Ints,
    starts: Ints,
    sent: Ints,
    fresh: Bools,
    first: Ints,
    marks: Ints,
    omissions: bool,
    mark: int,
    unless: int,
) -> None:
    """Sets `mark` on every broken fact. With `omissions`, what is never delivered counts as
    delivered after everything else; without, it does not count.

    `first` and `marks` may be of some members only: nobody's number depends on another's."""
    members, known, width = len(starts) - 1, len(sent), first.shape[1]
    carried = np.full((known, width), -1, np.int32)
    state = np.full((members, width), -1, np.int32)
    done = np.zeros(known, np.bool_)
    waiting = np.full(known, -1, np.int32)  # for each message a list of processes
    behind = np.full(members, -1, np.int32)
    row_of = starts[:members].copy()
    ready = np.arange(members)
    many = members
    while many > 0:
        many -= 1
        p = ready[many]
        row = row_of[p]
        mine = state[p]
        while row < starts[p + 1]:
            m = message[row]
            if kind[row] == SEND:
                _compare(mine, first, marks, m, mark, unless)
                _carry(carried, mine, first, marks, m, omissions)
                _copy(carried, m, mine)
                done[m] = True
                q = waiting[m]
                while q >= 0:
                    ready[many] = q
                    many += 1
                    q = behind[q]
            elif (fresh[row] and m < known) or kind[row] == LEARN:
                if not done[m]:
                    behind[p] = waiting[m]
                    waiting[m] = p
                    break
                theirs = carried[m]
                for q in range(width):
                    mine[q] = max(mine[q], theirs[q])
            row += 1
        row_of[p] = row
    for p in range(members):
        if row_of[p] < starts[p + 1]:  # something was delivered before it was sent
            _settle(kind, message, starts, fresh, first, marks, carried, omissions, mark, unless)
            break


@part
def _compare(state: Ints, first: Ints, marks: Ints, m: int, mark: int, unless: int) -> None:
    for p in range(len(state)):
        at = first[m, p]
        if state[p] > at and marks[m, p] & ADDRESSED and not marks[m, p] & unless:
            marks[m, p] |= mark


@part
def _carry(carried: Ints, state: Ints, first: Ints, marks: Ints, m: int, omissions: bool) -> None:
    """What m will carry: its sender's state, and its own deliveries."""
    for p in range(len(state)):
        latest = state[p]
        if marks[m, p] & ADDRESSED:
            at = first[m, p]
            if (at != NEVER or omissions) and at > latest:
                latest = at
        carried[m, p] = latest


@part
def _copy(carried: Ints, m: int, state: Ints) -> None:
    """In a loop: the compiler takes longer over what numpy says of arrays that do not match."""
    for p in range(len(state)):
        state[p] = carried[m, p]


@part
def _settle(
    kind: Ints,
    message: Ints,
    starts: Ints,
    fresh: Bools,
    first: Ints,
    marks: Ints,
    carried: Ints,
    omissions: bool,
    mark: int,
    unless: int,
) -> None:
    """For logs that contradict themselves: goes round until nobody learns anything new."""
    known, width = carried.shape
    state = np.empty(width, np.int32)
    before = np.empty(width, np.int32)
    changed = True
    while changed:
        changed = False
        for p in range(len(starts) - 1):
            state[:] = -1
            for row in range(starts[p], starts[p + 1]):
                m = message[row]
                if kind[row] == SEND:
                    _copy(carried, m, before)
                    _compare(state, first, marks, m, mark, unless)
                    _carry(carried, state, first, marks, m, omissions)
                    _copy(carried, m, state)
                    for q in range(width):
                        if carried[m, q] != before[q]:
                            changed = True
                elif fresh[row] and m < known:
                    for q in range(width):
                        state[q] = max(state[q], carried[m, q])


@part
def tally(
    message: Ints,
    starts: Ints,
    fresh: Bools,
    marks: Ints,
    low: int,
    known: int,
    wanted: Ints,
    counts: Ints,
    witness: Ints,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """Counts what the marks say, of the members from `low` on, in the order of process and row, and
    notes the first."""
    names = (FIFO, CAUSAL, TOTAL_GAP_FREE)
    broken = (FIFO_BROKEN, CAUSAL_BROKEN, GAP)
    doubtful = (FIFO_DOUBT, CAUSAL_DOUBT, GAP_DOUBT)
    interesting = 0
    for k in range(3):
        if wanted[names[k]]:
            interesting |= broken[k] | doubtful[k]
    for p in range(low, min(low + marks.shape[1], len(starts) - 1)):
        for row in range(starts[p], starts[p + 1]):
            m = message[row]
            if not fresh[row]:
                continue
            marked = marks[m, p - low]
            counts[TOTAL_GAP_FREE, CHECKED] += 1
            if m < known and marked & ADDRESSED:
                counts[FIFO, CHECKED] += 1
            if not marked & interesting:
                continue
            for k in range(3):
                name = names[k]
                if marked & broken[k] and wanted[name]:
                    if witness[name, 8] != 0:
                        note(witness[name], 0, p, row, -1, m, -1, 0, 0, -1)
                    if counts[name, VIOLATIONS] < LISTED:
                        hits = listed(hits, many, name, p, row, m)
                        many += 1
                    counts[name, VIOLATIONS] += 1
                elif marked & doubtful[k] and wanted[name]:
                    if witness[name, 8] == 2:
                        note(witness[name], 1, p, row, -1, m, -1, 0, 0, -1)
                    counts[name, DOUBTS] += 1
    counts[CAUSAL, CHECKED] = counts[FIFO, CHECKED]
    return hits, many
