"""The properties of one run, by what they ask for.

Tables of messages × members are looked at some members at a time, where there are many: `first` and
`marks` are of those from `low` on.
"""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.chain import chain_of, edges, entangled, ranks
from ordercast.pipeline.kernels.cycles import shortest_cycle
from ordercast.pipeline.kernels.delivered import no_creation
from ordercast.pipeline.kernels.findings import (
    AGREEMENT,
    CAUSAL,
    CHECKED,
    NO_CREATION,
    SYNCHRONOUS,
    TOTAL_ACYCLIC,
    TOTAL_GAP_FREE,
    TOTAL_PAIRWISE,
    UNIFORM_AGREEMENT,
    VALIDITY,
    VIOLATIONS,
)
from ordercast.pipeline.kernels.kernel import Bools, Ints, part, spliced
from ordercast.pipeline.kernels.knots import knots
from ordercast.pipeline.kernels.order import (
    CAUSAL_BROKEN,
    CAUSAL_DOUBT,
    mark_causal,
    mark_fifo,
    tally,
)
from ordercast.pipeline.kernels.owed import look_for_debts
from ordercast.pipeline.kernels.total import crossings, mark_total, pair_witness, shared

__all__ = ["asks_for_debts", "judge_cycles", "judge_deliveries", "judge_orders", "judge_pairs"]


@part
def asks_for_debts(wanted: Bools) -> bool:
    return bool(wanted[VALIDITY] or wanted[AGREEMENT] or wanted[UNIFORM_AGREEMENT])


@part
def judge_deliveries(
    message: Ints,
    origins: Ints,
    ids: Ints,
    starts: Ints,
    base: Ints,
    fresh: Bools,
    first: Ints,
    marks: Ints,
    low: int,
    up: Bools,
    known: int,
    size: int,
    complete: bool,
    wanted: Bools,
    debts: Ints,
    counts: Ints,
    witness: Ints,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """Creation, and who owes a delivery. Returns the hits and how many they are."""
    if wanted[NO_CREATION]:
        hits, many = no_creation(
            message, origins, ids, starts, fresh, marks, low, known, size, complete,
            counts, witness, hits, many,
        )  # fmt: skip
    if len(debts) > 0:
        look_for_debts(base, first, marks, up, low, debts)
    return hits, many


@part
def judge_orders(
    kind: Ints,
    message: Ints,
    starts: Ints,
    sent: Ints,
    base: Ints,
    fresh: Bools,
    first: Ints,
    marks: Ints,
    low: int,
    complete: bool,
    wanted: Bools,
    crossed: Bools,
    counts: Ints,
    witness: Ints,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """FIFO, causal and total order, but for pairs and cycles; sets `crossed` for each message that
    is in a crossed pair. Returns the hits and how many they are."""
    known = len(sent)
    omitted = mark_fifo(base, first, marks, complete)
    if wanted[CAUSAL]:
        mark_causal(
            kind, message, starts, sent, fresh, first, marks, complete,
            CAUSAL_BROKEN, CAUSAL_BROKEN,
        )  # fmt: skip
        if omitted and not complete:
            mark_causal(
                kind, message, starts, sent, fresh, first, marks, True,
                CAUSAL_DOUBT, CAUSAL_BROKEN | CAUSAL_DOUBT,
            )  # fmt: skip
    if wanted[TOTAL_PAIRWISE] or wanted[TOTAL_GAP_FREE]:
        mark_total(message, starts, fresh, first, marks, known, complete, crossed)
    return tally(message, starts, fresh, marks, low, known, wanted, counts, witness, hits, many)


@spliced
def judge_pairs(
    message: Ints,
    origins: Ints,
    numbers: Ints,
    starts: Ints,
    fresh: Bools,
    crossed: Bools,
    patience: int,
    counts: Ints,
    witness: Ints,
    exact: Bools,
) -> None:
    """The pairs of messages that two processes delivered in opposite orders."""
    mine = np.zeros(len(starts) - 1, np.int64)
    counts[TOTAL_PAIRWISE, CHECKED] = shared(message, starts, fresh, len(origins), mine)
    if crossed.any():
        pairs, exact[0] = crossings(message, starts, fresh, crossed, patience)
        counts[TOTAL_PAIRWISE, VIOLATIONS] = pairs
        pair_witness(message, starts, fresh, origins, numbers, crossed, witness)


@spliced
def judge_cycles(
    kind: Ints,
    message: Ints,
    origins: Ints,
    numbers: Ints,
    ids: Ints,
    starts: Ints,
    fresh: Bools,
    width: int,
    wanted: Bools,
    patience: int,
    counts: Ints,
) -> Ints:
    """What no one order fits; ranks are looked at for so many members at a time. Returns the
    cycles, see `judge_run`."""
    ways = np.empty((2 * max(len(ids), 2), 3), np.int64)
    steps = 0
    for name in (TOTAL_ACYCLIC, SYNCHRONOUS):
        if not wanted[name]:
            continue
        entries, begin = chain_of(kind, message, starts, fresh, name == SYNCHRONOUS)
        counts[name, CHECKED] = edges(begin)
        tangled = np.zeros(len(origins), np.bool_)
        earliest = np.empty((len(origins), width), np.int32)
        latest = np.empty((len(origins), width), np.int32)
        many_tangled = 0
        for low in range(0, len(ids), width):
            ranks(entries, begin, low, earliest, latest)
            many_tangled += entangled(entries, begin, earliest, latest, tangled)
        found, knot = knots(entries, begin, many_tangled, earliest, latest)
        if found == 0:
            continue
        counts[name, VIOLATIONS] = found
        cycle = shortest_cycle(entries, begin, origins, numbers, tangled, knot, patience)
        for k in range(len(cycle)):
            ways[steps, 0] = name
            ways[steps, 1] = cycle[k, 0]
            ways[steps, 2] = ids[cycle[k, 1]]
            steps += 1
    return ways[:steps]
