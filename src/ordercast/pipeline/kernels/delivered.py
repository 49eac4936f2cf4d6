"""What was delivered against what was sent: nothing twice, and nothing that nobody sent. What was
not delivered: `owed`."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.findings import (
    CHECKED,
    DOUBTS,
    LISTED,
    NO_CREATION,
    NO_DUPLICATION,
    VIOLATIONS,
    listed,
    note,
)
from ordercast.pipeline.kernels.index import ADDRESSED, DELIVER, place
from ordercast.pipeline.kernels.kernel import Bools, Ints, part

__all__ = ["no_creation", "no_duplication"]


@part
def no_duplication(
    kind: Ints,
    message: Ints,
    starts: Ints,
    fresh: Bools,
    messages: int,
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
    earlier = np.full(messages, -1, np.int64)  # where it was delivered once, and not yet twice
    for p in range(len(starts) - 1):
        for row in range(starts[p], starts[p + 1]):
            m = message[row]
            if kind[row] != DELIVER:
                continue
            if fresh[row]:
                earlier[m] = row
                continue
            if earlier[m] < 0:
                continue  # only its second delivery counts
            if bad == 0:
                note(witness[NO_DUPLICATION], 0, p, row, m, -1, -1, 0, 0, earlier[m])
            earlier[m] = -1
            if bad < LISTED:
                hits = listed(hits, many, NO_DUPLICATION, p, row, m)
                many += 1
            bad += 1
    counts[NO_DUPLICATION, VIOLATIONS] = bad
    return hits, many


@part
def no_creation(
    message: Ints,
    origins: Ints,
    ids: Ints,
    starts: Ints,
    fresh: Bools,
    marks: Ints,
    low: int,
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
    checked = counts[NO_CREATION, CHECKED]
    bad, doubts = counts[NO_CREATION, VIOLATIONS], counts[NO_CREATION, DOUBTS]
    for p in range(low, min(low + marks.shape[1], len(starts) - 1)):
        for row in range(starts[p], starts[p + 1]):
            m = message[row]
            if not fresh[row]:
                continue
            checked += 1
            if m < known:
                if marks[m, p - low] & ADDRESSED:
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
