"""All properties of one run after another, for many runs in one call."""

from __future__ import annotations

import numpy as np

from ordercast.pipeline.kernels.collecting import add_cycles, add_hits, by_rows, with_room
from ordercast.pipeline.kernels.findings import AT, OTHER, PROCESS, WIDTH
from ordercast.pipeline.kernels.index import (
    NEVER,
    addresses,
    bounds,
    chains,
    correct,
    first_deliveries,
    members,
)
from ordercast.pipeline.kernels.kernel import Bools, Ints, kernel, spliced
from ordercast.pipeline.kernels.messages import messages
from ordercast.pipeline.kernels.steps import judge_cycles, judge_deliveries, judge_orders

__all__ = ["PAIRS", "PATIENCE", "judge_runs"]

PATIENCE = 1 << 37
"""How many pairs to look at before giving up on an exact count: minutes, not days."""
PAIRS = 1 << 33
"""The same for crossed pairs: whoever has so many need not know of each, and most have not promised
a total order. Less than a minute."""


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
    hits, many = judge_deliveries(
        kind, message, origins, numbers, ids, starts, base, first, marks, correct(kind, starts),
        delivered, repeated, known, size, quiesced, complete, wanted, counts, witness,
    )  # fmt: skip
    hits, many = judge_orders(
        kind, message, origins, numbers, ids, starts, sent, base, first, marks,
        complete, wanted, min(patience, PAIRS), counts, witness, exact, hits, many,
    )  # fmt: skip
    ways = judge_cycles(
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
