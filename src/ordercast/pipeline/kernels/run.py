"""All properties of one run after another, for many runs in one call."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.cycles import (
    chain_of,
    edges,
    entangled,
    is_before,
    knots,
    shortest_cycle,
)
from ordercast.pipeline.kernels.delivered import no_creation, no_duplication, obligations
from ordercast.pipeline.kernels.findings import (
    AGREEMENT,
    AT,
    CAUSAL,
    CHECKED,
    EARLIER,
    FIFO,
    LATER,
    MESSAGE,
    NO_CREATION,
    NO_DUPLICATION,
    OTHER,
    PROCESS,
    ROW,
    SYNCHRONOUS,
    TOTAL_ACYCLIC,
    TOTAL_GAP_FREE,
    TOTAL_PAIRWISE,
    UNIFORM_AGREEMENT,
    VALIDITY,
    VIOLATIONS,
    WIDTH,
)
from ordercast.pipeline.kernels.index import (
    NEVER,
    addresses,
    bounds,
    chains,
    correct,
    first_deliveries,
    members,
    messages,
)
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel
from ordercast.pipeline.kernels.order import (
    CAUSAL_BROKEN,
    CAUSAL_DOUBT,
    causal_witness,
    fifo_witness,
    mark_causal,
    mark_fifo,
    tally,
)
from ordercast.pipeline.kernels.total import (
    crossings,
    gap_witness,
    mark_total,
    pair_witness,
    shared,
)

__all__ = ["PATIENCE", "judge_runs"]

PATIENCE = 1 << 37
"""How many pairs to look at before giving up on an exact count: minutes, not days."""


@kernel
def judge_runs(
    run_start: Ints,
    size: Ints,
    quiesced: Bools,
    complete: Bools,
    process: Ints,
    kind: Ints,
    origin: Ints,
    number: Ints,
    everyone: Bools,
    dest_start: Ints,
    dest: Ints,
    wanted: Bools,
    patience: int,
) -> tuple[Ints, Ints, Ints, Ints, Bools]:
    """Rows are sorted by run, process, position; run r has those from run_start[r] on.

    Returns, see `findings`: counts and witnesses (run × property × …), with rows counted over all
    runs and messages replaced by one of the rows that tell of them; hits with the run in front;
    cycles (run, property, row of the message, the member that has it before the next one), in
    order; and for each run whether crossed pairs were counted to the end.
    """
    runs = len(run_start) - 1
    counts = np.zeros((runs, 11, 3), np.int64)
    witnesses = np.full((runs, 11, WIDTH), -1, np.int64)
    hits = np.empty((16, 5), np.int64)
    cycles = np.empty((16, 4), np.int64)
    many_hits, many_cycles = 0, 0
    exact = np.ones(runs, np.bool_)
    for r in range(runs):
        low, high = run_start[r], run_start[r + 1]
        found, number_of_hits, about, way = judge_run(
            size[r],
            quiesced[r],
            complete[r],
            process[low:high],
            kind[low:high],
            origin[low:high],
            number[low:high],
            everyone[low:high],
            dest_start[low : high + 1],
            dest,
            wanted,
            patience,
            counts[r],
            witnesses[r],
            exact[r : r + 1],
        )
        hits = _with_room(hits, many_hits, number_of_hits)
        many_hits = _add_hits(hits, many_hits, r, found[:number_of_hits], low, about)
        cycles = _with_room(cycles, many_cycles, len(way))
        many_cycles = _add_cycles(cycles, many_cycles, r, way, low, about)
        _by_rows(witnesses[r], low, about)
    return counts, witnesses, hits[:many_hits], cycles[:many_cycles], exact


@kernel
def _add_hits(hits: Ints, many: int, run: int, found: Ints, low: int, about: Ints) -> int:
    """Adds those of one run; returns how many there are then."""
    for i in range(len(found)):
        hits[many, 0] = run
        hits[many, 1:] = found[i]
        hits[many, 4] = low + about[found[i, 3]]
        if found[i, 2] >= 0:
            hits[many, 3] = low + found[i, 2]
        many += 1
    return many


@kernel
def _add_cycles(cycles: Ints, many: int, run: int, way: Ints, low: int, about: Ints) -> int:
    """Adds those of one run; returns how many steps there are then."""
    for i in range(len(way)):
        cycles[many, 0] = run
        cycles[many, 1] = way[i, 0]
        cycles[many, 2] = low + about[way[i, 1]]
        cycles[many, 3] = way[i, 2]
        many += 1
    return many


@kernel
def _with_room(table: Ints, many: int, more: int) -> Ints:
    """The first `many` lines of a table that has room for some more."""
    size = len(table)
    while size < many + more:
        size *= 2
    if size == len(table):
        return table
    wider = np.empty((size, table.shape[1]), np.int64)
    wider[:many] = table[:many]
    return wider


@kernel
def _by_rows(witness: Ints, low: int, about: Ints) -> None:
    """Messages become rows that tell of them, and rows are counted over all runs."""
    for name in range(11):
        if witness[name, PROCESS] < 0:
            continue
        for field in (MESSAGE, LATER):
            if witness[name, field] >= 0:
                witness[name, field] = low + about[witness[name, field]]
        for field in (ROW, EARLIER):
            if witness[name, field] >= 0:
                witness[name, field] += low


@kernel
def judge_run(
    size: int,
    quiesced: bool,
    complete: bool,
    process: Ints,
    kind: Ints,
    origin: Ints,
    number: Ints,
    everyone: Bools,
    dest_start: Ints,
    dest: Ints,
    wanted: Bools,
    patience: int,
    counts: Ints,
    witness: Ints,
    exact: Bools,
) -> tuple[Ints, int, Ints, Ints]:
    """One run. Returns its hits and how many there are, a row that tells of each message, and its
    cycles (property, message, the member that has it before the next one)."""
    witness[:, AT] = 2
    ids = members(process, size)
    starts = bounds(process, ids)
    sent, base = chains(kind, starts)
    message, origins, numbers = messages(kind, origin, number, ids, sent, base)
    total, known = len(origins), len(sent)
    marks = np.zeros((total, len(ids)), np.uint8)
    first = np.full((total, len(ids)), NEVER, np.int32)
    addresses(ids, sent, everyone, dest_start, dest, marks)
    delivered, repeated = first_deliveries(kind, message, starts, first, marks)
    hits, many = _judge_deliveries(
        kind, message, origins, numbers, ids, starts, base, first, marks, delivered, repeated,
        known, size, quiesced, complete, wanted, counts, witness,
    )  # fmt: skip
    hits, many = _judge_orders(
        kind, message, origins, numbers, ids, starts, sent, base, first, marks,
        complete, wanted, patience, counts, witness, exact, hits, many,
    )  # fmt: skip
    ways = _judge_cycles(
        kind, message, origins, numbers, ids, starts, first, wanted, patience, counts
    )
    for name in range(11):
        for field in (PROCESS, OTHER):  # from here on by their own numbers
            if witness[name, field] >= 0:
                witness[name, field] = ids[witness[name, field]]
    for i in range(many):
        hits[i, 1] = ids[hits[i, 1]]
    about = np.empty(total, np.int64)
    for row in range(len(kind)):
        if message[row] >= 0:
            about[message[row]] = row
    return hits, many, about, ways


@kernel
def _judge_deliveries(
    kind: Ints,
    message: Ints,
    origins: Ints,
    numbers: Ints,
    ids: Ints,
    starts: Ints,
    base: Ints,
    first: Ints,
    marks: Ints,
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
            origins, numbers, ids, base, first, marks, correct(kind, starts),
            quiesced and complete, counts, witness, hits, many,
        )  # fmt: skip
    return hits, many


@kernel
def _judge_orders(
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
    if witness[FIFO, PROCESS] >= 0:
        fifo_witness(ids, origins, base, first, marks, complete, witness[FIFO])
    if witness[CAUSAL, PROCESS] >= 0:
        causal_witness(
            kind, message, origins, numbers, ids, starts, sent, first, marks, complete,
            witness[CAUSAL],
        )  # fmt: skip
    if witness[TOTAL_GAP_FREE, PROCESS] >= 0:
        gap_witness(origins, numbers, first, marks, known, complete, witness[TOTAL_GAP_FREE])
    if wanted[TOTAL_PAIRWISE]:
        counts[TOTAL_PAIRWISE, CHECKED] = shared(first)
        if many_crossed > 0:
            pairs, exact[0] = crossings(kind, message, starts, first, crossed, patience)
            counts[TOTAL_PAIRWISE, VIOLATIONS] = pairs
            pair_witness(origins, numbers, first, crossed, witness)
    return hits, many


@kernel
def _judge_cycles(
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
