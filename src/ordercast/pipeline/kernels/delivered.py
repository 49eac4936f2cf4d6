"""What was delivered against what was sent: the properties that ask for no order."""

from __future__ import annotations

from ordercast.pipeline.kernels.findings import (
    AGREEMENT,
    CHECKED,
    DOUBTS,
    LISTED,
    NO_CREATION,
    NO_DUPLICATION,
    UNIFORM_AGREEMENT,
    VALIDITY,
    VIOLATIONS,
    listed,
    note,
)
from ordercast.pipeline.kernels.index import ADDRESSED, DELIVER, NEVER, REPEATED, place
from ordercast.pipeline.kernels.kernel import Bools, Ints, part
from ordercast.pipeline.kernels.sorting import smaller

__all__ = ["no_creation", "no_duplication", "obligations"]


@part
def no_duplication(
    kind: Ints,
    message: Ints,
    starts: Ints,
    first: Ints,
    marks: Ints,
    delivered: int,
    repeated: int,
    counts: Ints,
    witness: Ints,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """A fact is a message that a process delivered, however often."""
    counts[NO_DUPLICATION, CHECKED] = delivered
    if repeated < 0:
        return hits, many
    bad = 0
    for p in range(len(starts) - 1):
        for row in range(starts[p], starts[p + 1]):
            m = message[row]
            if kind[row] != DELIVER or first[m, p] == row or not marks[m, p] & REPEATED:
                continue
            marks[m, p] &= ~REPEATED & 255  # only its second delivery counts
            if bad == 0:
                note(witness[NO_DUPLICATION], 0, p, row, m, -1, -1, 0, 0, first[m, p])
            if bad < LISTED:
                hits = listed(hits, many, NO_DUPLICATION, p, row, m)
                many += 1
            bad += 1
    counts[NO_DUPLICATION, VIOLATIONS] = bad
    return hits, many


@part
def no_creation(
    kind: Ints,
    message: Ints,
    origins: Ints,
    ids: Ints,
    starts: Ints,
    first: Ints,
    marks: Ints,
    known: int,
    size: int,
    complete: bool,
    counts: Ints,
    witness: Ints,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """A message that nobody sent is an orphan, not a forgery, if the log that would show its send
    has holes, or is not there."""
    checked, bad, doubts = 0, 0, 0
    for p in range(len(starts) - 1):
        for row in range(starts[p], starts[p + 1]):
            m = message[row]
            if kind[row] != DELIVER or first[m, p] != row:
                continue
            checked += 1
            if m < known:
                if marks[m, p] & ADDRESSED:
                    continue
                forged = True
            else:
                o = place(ids, origins[m])
                logged = o >= 0 and starts[o] < starts[o + 1]
                forged = complete and (logged or (size >= 0 and o < 0))
            missing = 1 if m >= known else 0
            if forged:
                if bad == 0:
                    note(witness[NO_CREATION], 0, p, row, m, -1, -1, 0, missing, -1)
                if bad < LISTED:
                    hits = listed(hits, many, NO_CREATION, p, row, m)
                    many += 1
                bad += 1
            else:
                if bad == 0 and doubts == 0:
                    note(witness[NO_CREATION], 1, p, row, m, -1, -1, 0, missing, -1)
                doubts += 1
    counts[NO_CREATION, CHECKED] = checked
    counts[NO_CREATION, VIOLATIONS] = bad
    counts[NO_CREATION, DOUBTS] = doubts
    return hits, many


@part
def obligations(
    origins: Ints,
    numbers: Ints,
    ids: Ints,
    base: Ints,
    first: Ints,
    marks: Ints,
    up: Bools,
    settled: bool,
    counts: Ints,
    witness: Ints,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """Validity and the two agreements. What is owed and not done is a violation once the log is
    whole and the run has come to rest (`settled`); before, it is a doubt."""
    unmet_column = VIOLATIONS if settled else DOUBTS
    grade = 0 if settled else 1
    for o in range(len(ids)):
        for m in range(base[o], base[o + 1]):
            anyone, someone_up = -1, -1
            owed, unmet, debtor = 0, 0, -1
            for p in range(len(ids)):
                done = first[m, p] != NEVER
                if done and anyone < 0:
                    anyone = p
                if done and up[p] and someone_up < 0:
                    someone_up = p
                if up[p] and marks[m, p] & ADDRESSED:
                    owed += 1
                    if not done:
                        unmet += 1
                        if debtor < 0:
                            debtor = p
            for name in (VALIDITY, AGREEMENT, UNIFORM_AGREEMENT):
                due, lacking, who, because = owed, unmet, debtor, o
                if name == VALIDITY:
                    if not up[o]:
                        continue
                    if marks[m, o] & ADDRESSED:
                        due, lacking, who = 1, 1 if first[m, o] == NEVER else 0, o
                else:
                    because = someone_up if name == AGREEMENT else anyone
                    if because < 0:
                        continue
                counts[name, CHECKED] += due
                counts[name, unmet_column] += lacking
                if lacking > 0:
                    seen = witness[name]
                    if (
                        seen[0] < 0
                        or who < seen[0]
                        or (who == seen[0] and smaller(origins, numbers, m, seen[2]))
                    ):
                        note(seen, grade, who, -1, m, -1, because, 0, 1, -1)
    if not settled:
        return hits, many
    for name in (VALIDITY, AGREEMENT, UNIFORM_AGREEMENT):
        hits, many = _list_unmet(name, ids, base, first, marks, up, counts, hits, many)
    return hits, many


@part
def _list_unmet(
    name: int,
    ids: Ints,
    base: Ints,
    first: Ints,
    marks: Ints,
    up: Bools,
    counts: Ints,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """By process and then message, which is not the order that they are counted in."""
    left = min(counts[name, VIOLATIONS], LISTED)
    for p in range(len(ids)):
        if left == 0:
            break
        if not up[p]:
            continue
        for o in range(len(ids)):
            if name == VALIDITY and not up[o]:
                continue
            for m in range(base[o], base[o + 1]):
                if left == 0 or first[m, p] != NEVER or not marks[m, p] & ADDRESSED:
                    continue
                because = name == VALIDITY and (p == o or not marks[m, o] & ADDRESSED)
                if name != VALIDITY:
                    for q in range(len(ids)):
                        if first[m, q] != NEVER and (up[q] or name == UNIFORM_AGREEMENT):
                            because = True
                            break
                if because:
                    hits = listed(hits, many, name, p, -1, m)
                    many += 1
                    left -= 1
    return hits, many
