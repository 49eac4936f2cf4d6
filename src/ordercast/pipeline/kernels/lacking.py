"""What a delivery that breaks FIFO, causal or gap-free total order was lacking: the witness.

Of few members, so that their deliveries are looked up in the rows: `at` is the row of each message
at the member that lacked it, and `asked` says which of them it was sent to.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.findings import (
    CAUSAL,
    DELIVERED,
    FIFO,
    INDIRECT,
    PROCESS,
    SENT,
    TOTAL_GAP_FREE,
    note,
)
from ordercast.pipeline.kernels.index import ADDRESSED, LEARN, NEVER, place
from ordercast.pipeline.kernels.kernel import Bools, Ints, part
from ordercast.pipeline.kernels.sorting import smaller

__all__ = ["asked_by_list", "asked_by_marks", "order_witnesses", "somebody_lacked"]

_LACKING = (FIFO, CAUSAL, TOTAL_GAP_FREE)


@part
def somebody_lacked(witness: Ints) -> bool:
    """Is there any witness to be completed?"""
    lacked = False
    for k in range(3):
        lacked = lacked or witness[_LACKING[k], PROCESS] >= 0
    return bool(lacked)


@part
def asked_by_marks(witness: Ints, marks: Ints, known: int) -> Bools:
    """Of each message, whether it was sent to the members of the three witnesses."""
    asked = np.zeros((3, known), np.bool_)
    for k in range(3):
        p = witness[_LACKING[k], PROCESS]
        for m in range(known) if p >= 0 else range(0):
            asked[k, m] = marks[m, p] & ADDRESSED != 0
    return asked


@part
def asked_by_list(
    witness: Ints, ids: Ints, sent: Ints, everyone: Bools, dest_start: Ints, dest: Ints
) -> Bools:
    """The same, of what was written down at the sends."""
    asked = np.zeros((3, len(sent)), np.bool_)
    for k in range(3):
        p = witness[_LACKING[k], PROCESS]
        for m in range(len(sent)) if p >= 0 else range(0):
            row = sent[m]
            asked[k, m] = everyone[row]
            for i in range(dest_start[row], dest_start[row + 1]):
                if not everyone[row] and dest[i] == ids[p]:
                    asked[k, m] = True
    return asked


@part
def _rows_at(message: Ints, starts: Ints, fresh: Bools, messages: int, p: int) -> Ints:
    at = np.full(messages, NEVER, np.int32)
    for row in range(starts[p], starts[p + 1]):
        if fresh[row]:
            at[message[row]] = row
    return at


@part
def _lacks(at: int, row: int, grade: int, complete: bool) -> bool:
    """Is a delivery `at` a reason to call one at `row` broken (grade 0) or doubtful (1)?"""
    if at == NEVER:
        return complete or grade == 1
    return at > row and grade == 0


@part
def _fifo_witness(
    ids: Ints, origins: Ints, base: Ints, at: Ints, asked: Bools, complete: bool, seen: Ints
) -> None:
    """The earliest message of the same sender that was lacking."""
    p, row, n, grade = seen[0], seen[1], seen[3], seen[8]
    o = place(ids, origins[n])
    for m in range(base[o], n):
        if asked[m] and _lacks(at[m], row, grade, complete):
            missing = 1 if at[m] == NEVER else 0
            note(seen, grade, p, row, m, n, o, SENT, missing, -1)
            return


@part
def _causal_witness(
    kind: Ints,
    message: Ints,
    origins: Ints,
    numbers: Ints,
    ids: Ints,
    starts: Ints,
    sent: Ints,
    fresh: Bools,
    at: Ints,
    asked: Bools,
    complete: bool,
    seen: Ints,
) -> None:
    """Of what was lacking, the message that is easiest to follow: one that the sender itself sent
    or delivered, or else any; the one with the smallest name."""
    p, row, n, grade = seen[0], seen[1], seen[3], seen[8]
    members, known = len(ids), len(sent)
    sender = place(ids, origins[n])
    upto = starts[:members].copy()  # how far each process's rows are in the past of n
    walked = upto.copy()
    upto[sender] = sent[n]
    moved = True
    while moved:
        moved = False
        for q in range(members):
            while walked[q] < upto[q]:
                step = walked[q]
                walked[q] += 1
                m = message[step]
                if (fresh[step] and m < known) or kind[step] == LEARN:
                    o = place(ids, origins[m])
                    if upto[o] <= sent[m]:
                        upto[o] = sent[m] + 1
                        moved = True
    at_sender = _rows_at(message, starts, fresh, len(at), sender)
    best, best_link = -1, INDIRECT + 1
    for m in range(known):
        o = place(ids, origins[m])
        if m == n or sent[m] >= upto[o] or not asked[m]:
            continue
        if not _lacks(at[m], row, grade, complete):
            continue
        link = INDIRECT
        if o == sender and sent[m] < sent[n]:
            link = SENT
        elif at_sender[m] < sent[n]:
            link = DELIVERED
        nearer = (link == INDIRECT) < (best_link == INDIRECT)
        as_near = (link == INDIRECT) == (best_link == INDIRECT)
        if best < 0 or nearer or (as_near and smaller(origins, numbers, m, best)):
            best, best_link = m, link
    missing = 1 if at[best] == NEVER else 0
    note(seen, grade, p, row, best, n, sender, best_link, missing, -1)


@part
def _gap_witness(
    message: Ints,
    origins: Ints,
    numbers: Ints,
    starts: Ints,
    known: int,
    fresh: Bools,
    at: Ints,
    asked: Bools,
    complete: bool,
    seen: Ints,
) -> None:
    """Of what was lacking, the message with the smallest name, and who had it in time."""
    q, row, n, grade = seen[0], seen[1], seen[3], seen[8]
    had = _had_before(message, starts, fresh, len(at), n)
    best = -1
    for m in range(known):
        if m == n or had[m] < 0 or not asked[m] or not _lacks(at[m], row, grade, complete):
            continue
        if best < 0 or not smaller(origins, numbers, best, m):
            best = m
    missing = 1 if at[best] == NEVER else 0
    note(seen, grade, q, row, best, n, had[best], 0, missing, -1)


@part
def _had_before(message: Ints, starts: Ints, fresh: Bools, messages: int, n: int) -> Ints:
    """For each message the first member that delivered it before n, or -1."""
    had = np.full(messages, -1, np.int32)
    for p in range(len(starts) - 1):
        upto = starts[p]
        for row in range(starts[p], starts[p + 1]):
            if fresh[row] and message[row] == n:
                upto = row
        for row in range(starts[p], upto):
            if fresh[row] and had[message[row]] < 0:
                had[message[row]] = p
    return had


@part
def order_witnesses(
    kind: Ints,
    message: Ints,
    origins: Ints,
    numbers: Ints,
    ids: Ints,
    starts: Ints,
    sent: Ints,
    base: Ints,
    fresh: Bools,
    asked: Bools,
    complete: bool,
    witness: Ints,
) -> None:
    """Completes those of FIFO, causal and gap-free total order, as far as something was noted.
    `asked`: see above, of each of the three."""
    total = len(origins)
    if witness[FIFO, PROCESS] >= 0:
        at = _rows_at(message, starts, fresh, total, witness[FIFO, PROCESS])
        _fifo_witness(ids, origins, base, at, asked[0], complete, witness[FIFO])
    if witness[CAUSAL, PROCESS] >= 0:
        at = _rows_at(message, starts, fresh, total, witness[CAUSAL, PROCESS])
        _causal_witness(
            kind, message, origins, numbers, ids, starts, sent, fresh, at, asked[1], complete,
            witness[CAUSAL],
        )  # fmt: skip
    if witness[TOTAL_GAP_FREE, PROCESS] >= 0:
        at = _rows_at(message, starts, fresh, total, witness[TOTAL_GAP_FREE, PROCESS])
        _gap_witness(
            message, origins, numbers, starts, len(sent), fresh, at, asked[2], complete,
            witness[TOTAL_GAP_FREE],
        )  # fmt: skip
