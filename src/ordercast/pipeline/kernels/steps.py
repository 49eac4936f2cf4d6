"""The properties of one run, by what they ask for."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.chain import chain_of, edges, entangled
from ordercast.pipeline.kernels.cycles import is_before, shortest_cycle
from ordercast.pipeline.kernels.delivered import no_creation, no_duplication, obligations
from ordercast.pipeline.kernels.findings import (
    AGREEMENT,
    CAUSAL,
    CHECKED,
    NO_CREATION,
    NO_DUPLICATION,
    SYNCHRONOUS,
    TOTAL_ACYCLIC,
    TOTAL_GAP_FREE,
    TOTAL_PAIRWISE,
    UNIFORM_AGREEMENT,
    VALIDITY,
    VIOLATIONS,
)
from ordercast.pipeline.kernels.kernel import Bools, Ints, spliced
from ordercast.pipeline.kernels.knots import knots
from ordercast.pipeline.kernels.lacking import order_witnesses
from ordercast.pipeline.kernels.order import (
    CAUSAL_BROKEN,
    CAUSAL_DOUBT,
    mark_causal,
    mark_fifo,
    tally,
)
from ordercast.pipeline.kernels.total import (
    crossings,
    mark_total,
    pair_witness,
    shared,
)

__all__ = ["judge_cycles", "judge_deliveries", "judge_orders"]


@spliced
def judge_deliveries(
    kind: Ints,
    message: Ints,
    origins: Ints,
    numbers: Ints,
    ids: Ints,
    starts: Ints,
    base: Ints,
    first: Ints,
    marks: Ints,
    up: Bools,
    delivered: int,
    repeated: int,
    known: int,
    size: int,
    quiesced: bool,
    complete: bool,
    wanted: Bools,
    counts: Ints,
    witness: Ints,
) -> tuple[Ints, int]:
    """Duplication, creation, and who owes a delivery. Returns the hits and how many they are."""
    hits = np.empty((0, 4), np.int64)
    many = 0
    if wanted[NO_DUPLICATION]:
        hits, many = no_duplication(
            kind, message, starts, first, marks, delivered, repeated, counts, witness, hits, many
        )
    if wanted[NO_CREATION]:
        hits, many = no_creation(
            kind, message, origins, ids, starts, first, marks, known, size, complete,
            counts, witness, hits, many,
        )  # fmt: skip
    if wanted[VALIDITY] or wanted[AGREEMENT] or wanted[UNIFORM_AGREEMENT]:
        hits, many = obligations(
            origins, numbers, ids, base, first, marks, up,
            quiesced and complete, counts, witness, hits, many,
        )  # fmt: skip
    return hits, many


@spliced
def judge_orders(
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
    wanted: Bools,
    patience: int,
    counts: Ints,
    witness: Ints,
    exact: Bools,
    hits: Ints,
    many: int,
) -> tuple[Ints, int]:
    """FIFO, causal and total order, but for cycles. Returns the hits and how many they are."""
    known = len(sent)
    omitted = mark_fifo(base, first, marks, complete)
    if wanted[CAUSAL]:
        mark_causal(
            kind, message, starts, sent, first, marks, complete, CAUSAL_BROKEN, CAUSAL_BROKEN
        )
        if omitted and not complete:
            mark_causal(
                kind, message, starts, sent, first, marks, True,
                CAUSAL_DOUBT, CAUSAL_BROKEN | CAUSAL_DOUBT,
            )  # fmt: skip
    crossed = np.zeros(len(origins), np.bool_)
    many_crossed = 0
    if wanted[TOTAL_PAIRWISE] or wanted[TOTAL_GAP_FREE]:
        many_crossed = mark_total(kind, message, starts, first, marks, known, complete, crossed)
    hits, many = tally(
        kind, message, starts, first, marks, known, wanted, counts, witness, hits, many
    )
    order_witnesses(
        kind, message, origins, numbers, ids, starts, sent, base, first, marks, complete, witness
    )
    if wanted[TOTAL_PAIRWISE]:
        counts[TOTAL_PAIRWISE, CHECKED] = shared(first, np.zeros(len(ids), np.int64))
        if many_crossed > 0:
            pairs, exact[0] = crossings(kind, message, starts, first, crossed, patience)
            counts[TOTAL_PAIRWISE, VIOLATIONS] = pairs
            pair_witness(origins, numbers, first, crossed, witness)
    return hits, many


@spliced
def judge_cycles(
    kind: Ints,
    message: Ints,
    origins: Ints,
    numbers: Ints,
    ids: Ints,
    starts: Ints,
    first: Ints,
    wanted: Bools,
    patience: int,
    counts: Ints,
) -> Ints:
    """What no one order fits. Returns the cycles, see `judge_run`."""
    ways = np.empty((2 * max(len(ids), 2), 3), np.int64)
    steps = 0
    for name in (TOTAL_ACYCLIC, SYNCHRONOUS):
        if not wanted[name]:
            continue
        entries, begin, earliest, latest = chain_of(
            kind, message, starts, first, name == SYNCHRONOUS
        )
        counts[name, CHECKED] = edges(begin)
        tangled = np.zeros(len(origins), np.bool_)
        many_tangled = entangled(entries, begin, earliest, latest, tangled)
        found, knot = knots(entries, begin, earliest, latest, many_tangled)
        if found == 0:
            continue
        counts[name, VIOLATIONS] = found
        cycle = shortest_cycle(
            entries, begin, earliest, latest, origins, numbers, tangled, knot, patience
        )
        for k in range(len(cycle)):
            n = cycle[(k + 1) % len(cycle)]
            ways[steps, 0] = name
            ways[steps, 1] = cycle[k]
            ways[steps, 2] = ids[is_before(earliest, latest, cycle[k], n)]
            steps += 1
    return ways[:steps]
