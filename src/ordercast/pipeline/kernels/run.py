"""All properties of one run after another, for many runs in one call."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.collecting import (
    add_cycles,
    add_hits,
    by_rows,
    in_order,
    with_room,
)
from ordercast.pipeline.kernels.delivered import no_duplication
from ordercast.pipeline.kernels.findings import (
    AT,
    NO_DUPLICATION,
    OTHER,
    PROCESS,
    TOTAL_PAIRWISE,
    WIDTH,
)
from ordercast.pipeline.kernels.index import (
    NEVER,
    addresses,
    at_a_time,
    bounds,
    chains,
    correct,
    first_deliveries,
    fresh_rows,
    members,
)
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel, spliced
from ordercast.pipeline.kernels.lacking import asked_by_list, order_witnesses, somebody_lacked
from ordercast.pipeline.kernels.messages import messages
from ordercast.pipeline.kernels.owed import DEBTS, list_unmet, obligations, to_list
from ordercast.pipeline.kernels.steps import (
    asks_for_debts,
    judge_cycles,
    judge_deliveries,
    judge_orders,
    judge_pairs,
)

__all__ = ["CELLS", "PAIRS", "PATIENCE", "judge_runs"]

PATIENCE = 1 << 37
"""How many pairs to look at before giving up on an exact count: minutes, not days."""
PAIRS = 1 << 33
"""The same for crossed pairs: whoever has so many need not know of each, and most have not promised
a total order. Less than a minute."""
CELLS = (1 << 25, 4)
"""How many messages × members are looked at at a time, at thirteen bytes each: so many, or so many
for each event, if that is more. Where members are few, that is all of them."""


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
    cells: Ints,
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
        found, number_of_hits, about, way = _judge_run(
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
            cells,
            counts[r],
            witnesses[r],
            exact[r : r + 1],
        )
        hits = with_room(hits, many_hits, number_of_hits)
        many_hits = add_hits(hits, many_hits, r, found[:number_of_hits], low, about)
        cycles = with_room(cycles, many_cycles, len(way))
        many_cycles = add_cycles(cycles, many_cycles, r, way, low, about)
        by_rows(witnesses[r], low, about)
    return counts, witnesses, hits[:many_hits], cycles[:many_cycles], exact


@spliced
def _judge_run(
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
    cells: Ints,
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
    fresh, delivered, repeated = fresh_rows(kind, message, starts, total)
    up = correct(kind, starts)
    width = at_a_time(total, len(ids), len(kind), cells)
    first = np.empty((total, width), np.int32)
    marks = np.empty((total, width), np.uint8)
    debts = np.full((known if asks_for_debts(wanted) else 0, DEBTS), -1, np.int32)
    crossed = np.zeros(total, np.bool_)
    hits = np.empty((0, 4), np.int64)
    many = 0
    if wanted[NO_DUPLICATION]:
        hits, many = no_duplication(
            kind, message, starts, fresh, total, delivered, repeated, counts, witness, hits, many
        )
    for low in range(0, len(ids), width):
        first[:] = NEVER
        marks[:] = 0
        addresses(ids, sent, everyone, dest_start, dest, marks, low)
        first_deliveries(message, starts, fresh, first, low)
        hits, many = judge_deliveries(
            message, origins, ids, starts, base, fresh, first, marks, low, up, known, size,
            complete, wanted, debts, counts, witness, hits, many,
        )  # fmt: skip
        if starts[low] < starts[min(low + width, len(ids))]:
            hits, many = judge_orders(
                kind, message, starts, sent, base, fresh, first, marks, low, complete, wanted,
                crossed, counts, witness, hits, many,
            )  # fmt: skip
    if len(debts) > 0:
        settled = quiesced and complete
        obligations(origins, numbers, base, up, debts, settled, counts, witness)
        left = to_list(counts, settled)
        for low in range(0, len(ids) if left.any() else 0, width):
            if width < len(ids):
                first[:] = NEVER
                marks[:] = 0
                addresses(ids, sent, everyone, dest_start, dest, marks, low)
                first_deliveries(message, starts, fresh, first, low)
            hits, many = list_unmet(base, first, marks, up, low, debts, left, hits, many)
    if many > 0:
        in_order(hits, many)
    if somebody_lacked(witness):
        asked = asked_by_list(witness, ids, sent, everyone, dest_start, dest)
        order_witnesses(
            kind, message, origins, numbers, ids, starts, sent, base, fresh, asked, complete,
            witness,
        )  # fmt: skip
    if wanted[TOTAL_PAIRWISE]:
        judge_pairs(
            message, origins, numbers, starts, fresh, crossed, min(patience, PAIRS),
            counts, witness, exact,
        )  # fmt: skip
    ways = judge_cycles(
        kind, message, origins, numbers, ids, starts, fresh, width, wanted, patience, counts
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
