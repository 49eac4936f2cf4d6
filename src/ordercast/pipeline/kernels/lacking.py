"""What a delivery that breaks FIFO, causal or gap-free total order was lacking: the witness."""

from __future__ import annotations

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
from ordercast.pipeline.kernels.index import ADDRESSED, DELIVER, LEARN, NEVER, place
from ordercast.pipeline.kernels.kernel import Ints, part
from ordercast.pipeline.kernels.sorting import smaller

__all__ = ["order_witnesses"]


@part
def _lacks(at: int, row: int, grade: int, complete: bool) -> bool:
    """Is a delivery `at` a reason to call one at `row` broken (grade 0) or doubtful (1)?"""
    if at == NEVER:
        return complete or grade == 1
    return at > row and grade == 0


@part
def _fifo_witness(
    ids: Ints, origins: Ints, base: Ints, first: Ints, marks: Ints, complete: bool, seen: Ints
) -> None:
    """The earliest message of the same sender that was lacking."""
    p, row, n, grade = seen[0], seen[1], seen[3], seen[8]
    o = place(ids, origins[n])
    for m in range(base[o], n):
        if marks[m, p] & ADDRESSED and _lacks(first[m, p], row, grade, complete):
            missing = 1 if first[m, p] == NEVER else 0
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
    first: Ints,
    marks: Ints,
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
                at = walked[q]
                walked[q] += 1
                m = message[at]
                if (kind[at] == DELIVER and m < known and first[m, q] == at) or kind[at] == LEARN:
                    o = place(ids, origins[m])
                    if upto[o] <= sent[m]:
                        upto[o] = sent[m] + 1
                        moved = True
    best, best_link = -1, INDIRECT + 1
    for m in range(known):
        o = place(ids, origins[m])
        if m == n or sent[m] >= upto[o] or not marks[m, p] & ADDRESSED:
            continue
        if not _lacks(first[m, p], row, grade, complete):
            continue
        link = INDIRECT
        if o == sender and sent[m] < sent[n]:
            link = SENT
        elif first[m, sender] < sent[n]:
            link = DELIVERED
        nearer = (link == INDIRECT) < (best_link == INDIRECT)
        as_near = (link == INDIRECT) == (best_link == INDIRECT)
        if best < 0 or nearer or (as_near and smaller(origins, numbers, m, best)):
            best, best_link = m, link
    missing = 1 if first[best, p] == NEVER else 0
    note(seen, grade, p, row, best, n, sender, best_link, missing, -1)


@part
def _gap_witness(
    origins: Ints,
    numbers: Ints,
    first: Ints,
    marks: Ints,
    known: int,
    complete: bool,
    seen: Ints,
) -> None:
    """Of what was lacking, the message with the smallest name, and who had it in time."""
    q, row, n, grade = seen[0], seen[1], seen[3], seen[8]
    best, ahead = -1, -1
    for m in range(known):
        if m == n or not marks[m, q] & ADDRESSED or not _lacks(first[m, q], row, grade, complete):
            continue
        if best >= 0 and smaller(origins, numbers, best, m):
            continue
        for p in range(first.shape[1]):
            if first[n, p] != NEVER and first[m, p] < first[n, p]:
                best, ahead = m, p
                break
    missing = 1 if first[best, q] == NEVER else 0
    note(seen, grade, q, row, best, n, ahead, 0, missing, -1)


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
    first: Ints,
    marks: Ints,
    complete: bool,
    witness: Ints,
) -> None:
    """Completes those of FIFO, causal and gap-free total order, as far as something was noted."""
    if witness[FIFO, PROCESS] >= 0:
        _fifo_witness(ids, origins, base, first, marks, complete, witness[FIFO])
    if witness[CAUSAL, PROCESS] >= 0:
        _causal_witness(
            kind, message, origins, numbers, ids, starts, sent, first, marks, complete,
            witness[CAUSAL],
        )  # fmt: skip
    if witness[TOTAL_GAP_FREE, PROCESS] >= 0:
        _gap_witness(origins, numbers, first, marks, len(sent), complete, witness[TOTAL_GAP_FREE])
