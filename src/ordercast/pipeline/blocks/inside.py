"""What can be said of the messages in a view: verdicts, and how they are tied to others."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ordercast.pipeline.blocks.found import Found, Noted, Tied
from ordercast.pipeline.blocks.view import View
from ordercast.pipeline.huge.found import Name
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels.block import judge_block
from ordercast.pipeline.kernels.cycles import shortest_cycle
from ordercast.pipeline.kernels.doors import tie_block
from ordercast.pipeline.kernels.far import judge_apart
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.kernels.run import PATIENCE
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["KNOTTED", "LACKING", "judge", "lacking", "tied"]

KNOTTED = ("total_acyclic", "synchronous")
LACKING = ("fifo", "causal", "total_gap_free")
"""Broken by deliveries in which another one was lacking."""
_DOORS_MOST = 1 << 16
"""Messages under way at a border."""


def judge(view: View, up: Bools, properties: Collection[str], *, settled: bool) -> Found:
    """in: who has not crashed in the end; whether the run has come to rest"""
    wanted = _wanted(properties)
    counts = np.zeros((11, 3), np.int64)
    witness = np.full((11, f.WIDTH), -1, np.int64)
    both = np.zeros(view.size, np.int64)
    hits, exact, two = judge_block.for_rows(view.total)(
        view.rows.kind, view.starts, view.sent, view.base, view.message, view.origins,
        view.numbers, view.turn, view.fresh, view.first, view.marks.copy(), up, view.delivered,
        view.repeated, settled, wanted, PATIENCE, counts, witness, both,
    )  # fmt: skip
    return Found(
        counts.tolist(),
        view.noted(witness),
        [
            (name, p, view.position(row), view.name(m))
            for name, p, row, m in hits.tolist()
            if wanted[name]
        ],
        both.tolist(),
        bool(exact),
        {
            name: [(view.name(m), p) for which, m, p in two.tolist() if PROPERTIES[which] == name]
            for name in KNOTTED
            if name in properties
        },
    )


def lacking(
    view: View, properties: Collection[str]
) -> tuple[list[tuple[Name, int, int]], list[Noted | None]]:
    """Of the messages that are set apart: `Found.marked`, and `Found.lacking`."""
    witness = np.full((11, f.WIDTH), -1, np.int64)
    marked = judge_apart.for_rows(view.total)(
        view.rows.kind, view.message, view.starts, view.sent, view.base, view.origins,
        view.numbers, view.turn, view.fresh, view.first, view.marks.copy(), _wanted(properties),
        witness,
    )  # fmt: skip
    return [(view.name(m), p, bits) for m, p, bits in marked.tolist()], view.noted(witness)


def _wanted(properties: Collection[str]) -> Bools:
    return np.array([name in properties for name in PROPERTIES])


def tied(view: View, name: str, same: list[list[Name]], *, with_cycle: bool = False) -> Tied:
    """`same`: doors that lie in one knot."""
    loops = [[*those, those[0]] for those in same]
    more = np.array([view.index[one] for loop in loops for one in loop], np.int32)
    chains = tie_block.for_rows(view.total)(
        view.rows.kind, view.message, view.starts, view.fresh, len(view.origins), view.low,
        view.high, name == "synchronous", more, np.cumsum([0, *map(len, loops)]),
    )  # fmt: skip
    entries, begin, knot, doors, sides, ways, closed = chains
    if len(doors) > _DOORS_MOST:
        raise Unhealthy("has too many messages under way at a time")
    place = {m: i for i, m in enumerate(doors.tolist())}
    ends = [
        (place[entries[first]], place[entries[last - 1]]) if first < last else None
        for first, last in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True)
    ]
    cycle: list[tuple[Name, int]] = []
    if with_cycle and closed:
        knot = np.where(np.isin(knot, knot[doors]), 0, knot)
        cycle = _cycle(view, entries, begin, knot)
    return Tied(
        [view.name(m) for m in doors.tolist()], sides.tolist(), knot[doors].tolist(),
        [(one, other) for one, other in ways.tolist()], ends,
        np.diff(begin).tolist(), int(closed), cycle,
    )  # fmt: skip


def _cycle(view: View, entries: Ints, begin: Ints, knot: Ints) -> list[tuple[Name, int]]:
    nothing = np.zeros(len(view.origins), np.bool_)
    found = shortest_cycle.for_rows(view.total)(
        entries, begin, view.origins, view.numbers, nothing, knot, PATIENCE
    )
    return [(view.name(m), p) for m, p in found.tolist()]
