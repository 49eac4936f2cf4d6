"""What a delivery that breaks FIFO or causal order was lacking: the witness."""

from __future__ import annotations

from ordercast.pipeline.kernels.findings import DELIVERED, INDIRECT, SENT, note
from ordercast.pipeline.kernels.index import ADDRESSED, DELIVER, NEVER, place
from ordercast.pipeline.kernels.kernel import Ints, part
from ordercast.pipeline.kernels.sorting import smaller

__all__ = ["causal_witness", "fifo_witness", "lacks"]


@part
def lacks(at: int, row: int, grade: int, complete: bool) -> bool:
    """Is a delivery `at` a reason to call one at `row` broken (grade 0) or doubtful (1)?"""
    if at == NEVER:
        return complete or grade == 1
    return at > row and grade == 0


@part
def fifo_witness(
    ids: Ints, origins: Ints, base: Ints, first: Ints, marks: Ints, complete: bool, seen: Ints
) -> None:
    """The earliest message of the same sender that was lacking."""
    p, row, n, grade = seen[0], seen[1], seen[3], seen[8]
    o = place(ids, origins[n])
    for m in range(base[o], n):
        if marks[m, p] & ADDRESSED and lacks(first[m, p], row, grade, complete):
            missing = 1 if first[m, p] == NEVER else 0
            note(seen, grade, p, row, m, n, o, SENT, missing, -1)
            return


@part
def causal_witness(
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
                if kind[at] == DELIVER and m < known and first[m, q] == at:
                    o = place(ids, origins[m])
                    if upto[o] <= sent[m]:
                        upto[o] = sent[m] + 1
                        moved = True
    best, best_link = -1, INDIRECT + 1
    for m in range(known):
        o = place(ids, origins[m])
        if m == n or sent[m] >= upto[o] or not marks[m, p] & ADDRESSED:
            continue
        if not lacks(first[m, p], row, grade, complete):
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
