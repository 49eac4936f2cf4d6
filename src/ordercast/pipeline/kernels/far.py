"""Messages that are set apart in a block (`block`): they reach too far for any block.

Of these few, all rows of the whole run are there, whichever block it is. So each block compares
them with its own and its early messages; what is to be said of them comes from all blocks together.
What is beyond a block's rows is how one got to know of them; so that is found first (`spread`), and
told by rows of its own (LEARN).
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.block import APART, LATE, only
from ordercast.pipeline.kernels.findings import AT, CAUSAL, TOTAL_GAP_FREE
from ordercast.pipeline.kernels.index import ADDRESSED, DELIVER, LEARN, NEVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel, part
from ordercast.pipeline.kernels.lacking import asked_by_marks, order_witnesses
from ordercast.pipeline.kernels.order import CAUSAL_BROKEN, mark_causal, mark_fifo, tally
from ordercast.pipeline.kernels.total import mark_total

__all__ = ["judge_apart", "spread"]

_AT_ONCE = 63
"""Messages whose ways are followed together, a bit each."""
_LACKING = 255 - ADDRESSED


@kernel
def spread(kind: Ints, message: Ints, starts: Ints, sent: Ints, first: Ints, those: Ints) -> Ints:
    """For each of those messages and each member, from which row on it knows of it, or NEVER.
    Nothing at all, if something was delivered before it was sent."""
    members = len(starts) - 1
    since = np.full((len(those), members), NEVER, np.int32)
    order, all_rows = _in_causal_order(kind, message, starts, sent, first)
    if not all_rows:
        return since[:0]
    owner = np.empty(len(kind), np.int16)
    for p in range(members):
        owner[starts[p] : starts[p + 1]] = p
    carried = np.zeros(len(sent), np.int64)
    state = np.zeros(members, np.int64)
    for begin in range(0, len(those), _AT_ONCE):
        carried[:] = 0
        state[:] = 0
        for i in range(begin, min(begin + _AT_ONCE, len(those))):
            carried[those[i]] |= 1 << (i - begin)
        for k in range(len(order)):
            row = order[k]
            m, p = message[row], owner[row]
            new = carried[m] & ~state[p]
            if kind[row] == SEND:
                carried[m] |= state[p]
            state[p] |= new
            i = begin
            while new > 0:
                if new & 1:
                    since[i, p] = row
                new >>= 1
                i += 1
    return since


@part
def _in_causal_order(
    kind: Ints, message: Ints, starts: Ints, sent: Ints, first: Ints
) -> tuple[Ints, bool]:
    """The rows by which something becomes known, each after what it follows from; and whether that
    is possible for all."""
    members, known = len(starts) - 1, len(sent)
    order = np.empty(len(kind), np.int32)
    done = np.zeros(known, np.bool_)
    row_of = starts[:members].copy()
    many, moved = 0, True
    while moved:
        moved = False
        for p in range(members):
            row = row_of[p]
            while row < starts[p + 1]:
                m = message[row]
                heard = kind[row] == DELIVER and m < known and first[m, p] == row
                if heard or kind[row] == LEARN:
                    if not done[m]:
                        break
                    order[many] = row
                    many += 1
                elif kind[row] == SEND:
                    done[m] = True
                    order[many] = row
                    many += 1
                row += 1
            moved = moved or row > row_of[p]
            row_of[p] = row
    all_rows = True
    for p in range(members):
        all_rows = all_rows and row_of[p] == starts[p + 1]
    return order[:many], all_rows


@kernel
def judge_apart(
    kind: Ints,
    message: Ints,
    starts: Ints,
    sent: Ints,
    base: Ints,
    origins: Ints,
    numbers: Ints,
    turn: Ints,
    fresh: Bools,
    first: Ints,
    marks: Ints,
    wanted: Bools,
    witness: Ints,
) -> Ints:
    """In which deliveries of messages set apart something was lacking, as far as this block can
    tell: (message, member, marks). Of late messages it can tell nothing.

    Fills in the smallest witnesses (`findings`), and unsets who late messages are addressed to.
    """
    members = len(starts) - 1
    ids = np.arange(members).astype(np.int32)
    witness[:, AT] = 2
    for m in range(len(turn)):
        if turn[m] == LATE:
            for p in range(members):
                marks[m, p] &= 255 - ADDRESSED
    mark_fifo(base, first, marks, True)
    if wanted[CAUSAL]:
        mark_causal(
            kind, message, starts, sent, fresh, first, marks, True, CAUSAL_BROKEN, CAUSAL_BROKEN
        )
    if wanted[TOTAL_GAP_FREE]:
        crossed = np.zeros(len(turn), np.bool_)
        mark_total(message, starts, fresh, first, marks, len(sent), True, crossed)
    counts = np.zeros((len(wanted), 3), np.int64)
    apart = only(message, fresh, turn, APART, APART)
    tally(
        message, starts, apart, marks, 0, len(sent), wanted, counts, witness,
        np.empty((0, 4), np.int64), 0,
    )  # fmt: skip
    asked = asked_by_marks(witness, marks, len(sent))
    order_witnesses(
        kind, message, origins, numbers, ids, starts, sent, base, fresh, asked, True, witness
    )
    found = np.empty((len(turn) * members, 3), np.int64)
    many = 0
    for m in range(len(turn)):
        for p in range(members) if turn[m] == APART else range(0):
            if marks[m, p] & _LACKING:
                found[many, 0], found[many, 1], found[many, 2] = m, p, marks[m, p] & _LACKING
                many += 1
    return found[:many]
