"""One block of a huge run: the rows between two cuts through all logs, and some on either side.

A message is EARLY if it was sent before the first cut, LATE if after the second one, and else the
block's OWN; unless it was set APART (`far`). Of all but late ones, all rows are there; of late
ones perhaps not. What is counted is what became of its own; of pairs, those that have one of its
own and none that is late.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.chain import chain_of, entangled, ranks
from ordercast.pipeline.kernels.cycles import shortest_cycle
from ordercast.pipeline.kernels.delivered import no_duplication
from ordercast.pipeline.kernels.findings import (
    AT,
    CAUSAL,
    NO_DUPLICATION,
    SYNCHRONOUS,
    TOTAL_ACYCLIC,
    TOTAL_GAP_FREE,
    TOTAL_PAIRWISE,
    VIOLATIONS,
)
from ordercast.pipeline.kernels.index import (
    NEVER,
    addresses,
    bounds,
    chains,
    first_deliveries,
    fresh_rows,
    members,
)
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel, part, spliced
from ordercast.pipeline.kernels.lacking import asked_by_marks, order_witnesses
from ordercast.pipeline.kernels.messages import messages
from ordercast.pipeline.kernels.order import CAUSAL_BROKEN, mark_causal, mark_fifo, tally
from ordercast.pipeline.kernels.owed import DEBTS, list_unmet, obligations, to_list
from ordercast.pipeline.kernels.steps import asks_for_debts, judge_deliveries
from ordercast.pipeline.kernels.total import (
    crossings,
    mark_total,
    pair_witness,
    shared,
)

__all__ = ["APART", "EARLY", "LATE", "OWN", "judge_block", "only", "read_block"]

APART, EARLY, OWN, LATE = 0, 1, 2, 3


@kernel
def read_block(
    size: int,
    process: Ints,
    kind: Ints,
    origin: Ints,
    number: Ints,
    everyone: Bools,
    dest_start: Ints,
    dest: Ints,
    apart: Bools,
    low: Ints,
    high: Ints,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Bools, Ints, Ints, Ints]:
    """What the rows say. `apart`: those of messages that are set apart; `low` and `high`: where,
    among each member's rows, the cuts are.

    Returns: where each member's rows begin; the rows of all sends, and where each member's begin;
    each row's message; the messages' origins, numbers and turns; which rows are first
    deliveries, those, and marks (`index`); and how many deliveries the own messages have, and the
    first row that repeats one.
    """
    ids = members(process, size)
    starts = bounds(process, ids)
    sent, base = chains(kind, starts)
    message, origins, numbers = messages(kind, origin, number, ids, sent, base)
    turn = np.full(len(origins), OWN, np.int8)
    for p in range(size):
        for m in range(base[p], base[p + 1]):
            if sent[m] < low[p]:
                turn[m] = EARLY
            elif sent[m] >= high[p]:
                turn[m] = LATE
    for row in range(len(kind)):
        if apart[row]:
            turn[message[row]] = APART
    marks = np.zeros((len(origins), size), np.uint8)
    first = np.full((len(origins), size), NEVER, np.int32)
    addresses(ids, sent, everyone, dest_start, dest, marks, 0)
    fresh, _, repeated = fresh_rows(kind, message, starts, len(origins))
    first_deliveries(message, starts, fresh, first, 0)
    counts = np.array([only(message, fresh, turn, OWN, OWN).sum(), repeated])
    return starts, sent, base, message, origins, numbers, turn, fresh, first, marks, counts


@part
def only(message: Ints, fresh: Bools, turn: Ints, least: int, most: int) -> Bools:
    """The deliveries of messages of these turns, as if the others had never been delivered."""
    chosen = np.zeros(len(fresh), np.bool_)
    for row in range(len(fresh)):
        chosen[row] = fresh[row] and least <= turn[message[row]] <= most
    return chosen


@part
def _table(message: Ints, starts: Ints, fresh: Bools, messages: int) -> Ints:
    first = np.full((messages, len(starts) - 1), NEVER, np.int32)
    first_deliveries(message, starts, fresh, first, 0)
    return first


@kernel
def judge_block(
    kind: Ints,
    starts: Ints,
    sent: Ints,
    base: Ints,
    message: Ints,
    origins: Ints,
    numbers: Ints,
    turn: Ints,
    fresh: Bools,
    first: Ints,
    marks: Ints,
    up: Bools,
    delivered: int,
    repeated: int,
    settled: bool,
    wanted: Bools,
    patience: int,
    counts: Ints,
    witness: Ints,
    both: Ints,
) -> tuple[Ints, bool, Ints]:
    """All properties but for knots. Fills in counts and witnesses (`findings`), and `both`: how
    many of its own messages that others delivered as well each member did. Returns the hits,
    whether crossed pairs were counted to the end, and of each kind of chain two messages that come
    before each other, if there are any: (property, message, the member that has it first)."""
    size = len(starts) - 1
    ids = np.arange(size).astype(np.int32)
    witness[:, AT] = 2
    total, known = len(turn), len(sent)
    own = only(message, fresh, turn, OWN, OWN)
    mine = np.zeros(marks.shape, np.uint8)
    for m in range(total):
        if turn[m] == OWN:
            for p in range(size):
                mine[m, p] = marks[m, p]
    hits = np.empty((0, 4), np.int64)
    many = 0
    if wanted[NO_DUPLICATION]:
        hits, many = no_duplication(
            kind, message, starts, own, total, delivered, repeated, counts, witness, hits, many
        )
    debts = np.full((known if asks_for_debts(wanted) else 0, DEBTS), -1, np.int32)
    own_first = _table(message, starts, own, total)
    hits, many = judge_deliveries(
        message, origins, ids, starts, base, own, own_first, mine, 0, up, known, size, True,
        wanted, debts, counts, witness, hits, many,
    )  # fmt: skip
    if len(debts) > 0:
        obligations(origins, numbers, base, up, debts, settled, counts, witness)
        left = to_list(counts, settled)
        if left.any():
            hits, many = list_unmet(base, own_first, mine, up, 0, debts, left, hits, many)
    mark_fifo(base, first, marks, True)
    if wanted[CAUSAL]:
        mark_causal(
            kind, message, starts, sent, fresh, first, marks, True, CAUSAL_BROKEN, CAUSAL_BROKEN
        )
    crossed = np.zeros(total, np.bool_)
    if wanted[TOTAL_GAP_FREE]:
        mark_total(message, starts, fresh, first, marks, known, True, crossed)
    hits, many = tally(message, starts, own, marks, 0, known, wanted, counts, witness, hits, many)
    asked = asked_by_marks(witness, marks, known)
    order_witnesses(
        kind, message, origins, numbers, ids, starts, sent, base, fresh, asked, True, witness
    )
    shared(message, starts, own, total, both)
    settled_ones = only(message, fresh, turn, APART, OWN)
    exact = True
    if wanted[TOTAL_PAIRWISE]:
        exact = _pairs(
            message, starts, sent, origins, numbers, turn, settled_ones, fresh, marks,
            patience, counts, witness,
        )  # fmt: skip
    two = _entangled(kind, message, starts, origins, numbers, settled_ones, wanted, patience)
    return hits[:many], exact, two


@spliced
def _pairs(
    message: Ints,
    starts: Ints,
    sent: Ints,
    origins: Ints,
    numbers: Ints,
    turn: Ints,
    settled: Bools,
    fresh: Bools,
    marks: Ints,
    patience: int,
    counts: Ints,
    witness: Ints,
) -> bool:
    """Crossed pairs: all without late ones, but for those with none of its own, which an earlier
    block counts, or none."""
    crossed = np.zeros(len(turn), np.bool_)
    first = _table(message, starts, settled, len(turn))
    if mark_total(message, starts, settled, first, marks, len(sent), True, crossed) == 0:
        return True
    pairs, exact = crossings(message, starts, settled, crossed, patience)
    early = only(message, fresh, turn, APART, EARLY)
    before, _ = crossings(message, starts, early, crossed, patience)
    counts[TOTAL_PAIRWISE, VIOLATIONS] = pairs - before
    pair_witness(message, starts, settled, origins, numbers, crossed, witness)
    return bool(exact)


@spliced
def _entangled(
    kind: Ints,
    message: Ints,
    starts: Ints,
    origins: Ints,
    numbers: Ints,
    settled: Bools,
    wanted: Bools,
    patience: int,
) -> Ints:
    two = np.empty((4, 3), np.int64)
    steps = 0
    knot = np.zeros(len(origins), np.int32)
    for name in (TOTAL_ACYCLIC, SYNCHRONOUS):
        if not wanted[name]:
            continue
        entries, begin = chain_of(kind, message, starts, settled, name == SYNCHRONOUS)
        earliest = np.empty((len(origins), len(starts) - 1), np.int32)
        latest = np.empty((len(origins), len(starts) - 1), np.int32)
        ranks(entries, begin, 0, earliest, latest)
        tangled = np.zeros(len(origins), np.bool_)
        if entangled(entries, begin, earliest, latest, tangled) == 0:
            continue
        cycle = shortest_cycle(entries, begin, origins, numbers, tangled, knot, patience)
        for k in range(2):
            two[steps, 0] = name
            two[steps, 1] = cycle[k, 0]
            two[steps, 2] = cycle[k, 1]
            steps += 1
    return two[:steps]
