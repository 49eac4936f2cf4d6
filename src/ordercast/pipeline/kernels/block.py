"""One block of a huge run: the rows between two cuts through all logs, and some on either side.

A message is EARLY if it was sent before the first cut, LATE if after the second one, and else the
block's OWN; unless it was set APART (`far`). Of all but late ones, all rows are there; of late
ones perhaps not. What is counted is what became of its own; of pairs, those that have one of its
own and none that is late.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.chain import chain_of, entangled
from ordercast.pipeline.kernels.cycles import is_before, shortest_cycle
from ordercast.pipeline.kernels.findings import (
    AT,
    CAUSAL,
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
    members,
)
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel, part, spliced
from ordercast.pipeline.kernels.lacking import order_witnesses
from ordercast.pipeline.kernels.messages import messages
from ordercast.pipeline.kernels.order import CAUSAL_BROKEN, mark_causal, mark_fifo, tally
from ordercast.pipeline.kernels.steps import judge_deliveries
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
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """What the rows say. `apart`: those of messages that are set apart; `low` and `high`: where,
    among each member's rows, the cuts are.

    Returns: where each member's rows begin; the rows of all sends, and where each member's begin;
    each row's message; the messages' origins, numbers and turns; first deliveries and marks
    (`index`); and how many deliveries the own messages have, and the first row that repeats one.
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
    addresses(ids, sent, everyone, dest_start, dest, marks)
    _, repeated = first_deliveries(kind, message, starts, first, marks)
    delivered = 0
    for m in range(len(origins)):
        if turn[m] == OWN:
            for p in range(size):
                delivered += first[m, p] != NEVER
    counts = np.array([delivered, repeated])
    return starts, sent, base, message, origins, numbers, turn, first, marks, counts


@part
def only(first: Ints, turn: Ints, least: int, most: int) -> Ints:
    """The deliveries of messages of these turns, as if the others had never been delivered."""
    chosen = np.full(first.shape, NEVER, np.int32)
    for m in range(len(turn)):
        if least <= turn[m] <= most:
            for p in range(first.shape[1]):
                chosen[m, p] = first[m, p]
    return chosen


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
    own = only(first, turn, OWN, OWN)
    mine = np.zeros(marks.shape, np.uint8)
    for m in range(len(turn)):
        if turn[m] == OWN:
            for p in range(size):
                mine[m, p] = marks[m, p]
    hits, many = judge_deliveries(
        kind, message, origins, numbers, ids, starts, base, own, mine, up, delivered, repeated,
        len(sent), size, settled, True, wanted, counts, witness,
    )  # fmt: skip
    mark_fifo(base, first, marks, True)
    if wanted[CAUSAL]:
        mark_causal(kind, message, starts, sent, first, marks, True, CAUSAL_BROKEN, CAUSAL_BROKEN)
    crossed = np.zeros(len(turn), np.bool_)
    if wanted[TOTAL_GAP_FREE]:
        mark_total(kind, message, starts, first, marks, len(sent), True, crossed)
    hits, many = tally(
        kind, message, starts, own, marks, len(sent), wanted, counts, witness, hits, many
    )
    order_witnesses(
        kind, message, origins, numbers, ids, starts, sent, base, first, marks, True, witness
    )
    shared(own, both)
    settled_ones = only(first, turn, APART, OWN)
    exact = True
    if wanted[TOTAL_PAIRWISE]:
        exact = _pairs(
            kind, message, starts, sent, origins, numbers, turn, settled_ones, first, marks,
            patience, counts, witness,
        )  # fmt: skip
    two = _entangled(kind, message, starts, origins, numbers, settled_ones, wanted, patience)
    return hits[:many], exact, two


@spliced
def _pairs(
    kind: Ints,
    message: Ints,
    starts: Ints,
    sent: Ints,
    origins: Ints,
    numbers: Ints,
    turn: Ints,
    settled: Ints,
    first: Ints,
    marks: Ints,
    patience: int,
    counts: Ints,
    witness: Ints,
) -> bool:
    """Crossed pairs: all without late ones, but for those with none of its own, which an earlier
    block counts, or none."""
    crossed = np.zeros(len(turn), np.bool_)
    if mark_total(kind, message, starts, settled, marks, len(sent), True, crossed) == 0:
        return True
    pairs, exact = crossings(kind, message, starts, settled, crossed, patience)
    early = only(first, turn, APART, EARLY)
    before, _ = crossings(kind, message, starts, early, crossed, patience)
    counts[TOTAL_PAIRWISE, VIOLATIONS] = pairs - before
    pair_witness(origins, numbers, settled, crossed, witness)
    return bool(exact)


@spliced
def _entangled(
    kind: Ints,
    message: Ints,
    starts: Ints,
    origins: Ints,
    numbers: Ints,
    settled: Ints,
    wanted: Bools,
    patience: int,
) -> Ints:
    two = np.empty((4, 3), np.int64)
    steps = 0
    knot = np.zeros(len(origins), np.int32)
    for name in (TOTAL_ACYCLIC, SYNCHRONOUS):
        if not wanted[name]:
            continue
        entries, begin, earliest, latest = chain_of(
            kind, message, starts, settled, name == SYNCHRONOUS
        )
        tangled = np.zeros(len(origins), np.bool_)
        if entangled(entries, begin, earliest, latest, tangled) == 0:
            continue
        cycle = shortest_cycle(
            entries, begin, earliest, latest, origins, numbers, tangled, knot, patience
        )
        for k in range(2):
            two[steps, 0] = name
            two[steps, 1] = cycle[k]
            two[steps, 2] = is_before(earliest, latest, cycle[k], cycle[1 - k])
            steps += 1
    return two[:steps]
