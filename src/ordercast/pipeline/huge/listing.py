"""The first deliveries that broke an order, one by one: which rows they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec
import numpy as np

from ordercast.pipeline.arrays import ints_of
from ordercast.pipeline.huge.apart import Apart
from ordercast.pipeline.huge.columns import columns_of, stripped
from ordercast.pipeline.huge.groups import read
from ordercast.pipeline.huge.orders import Lacking, Order
from ordercast.pipeline.huge.segments import Part
from ordercast.pipeline.huge.spans import Spans, both, size
from ordercast.pipeline.huge.tally import Tally
from ordercast.pipeline.kernels import apart as a
from ordercast.pipeline.kernels.findings import LISTED
from ordercast.pipeline.kernels.index import DELIVER

__all__ = ["Broken", "Sought", "broken", "pick"]


class Sought(msgspec.Struct, frozen=True):
    """Some regular messages, by origin and place, that are delivered in these rows."""

    part: Part
    places: Apart


class Broken(msgspec.Struct, frozen=True):
    violations: int = 0
    doubts: int = 0
    listed: list[tuple[int, int, tuple[int, int]]] = []
    """The first ones: process, position, and the message's origin and number."""
    first: Lacking | None = None
    """The first violation, or else the first doubt."""


Pick = Callable[[Sequence[Sought]], list[list[tuple[int, int, int]]]]
"""For each of those, what `pick` finds."""


def pick(sought: Sought, apart: Apart) -> list[tuple[int, int, int]]:
    """The first of them: position, origin and place."""
    (kind, origin, place), kept = stripped(columns_of(sought.part, len(apart.spans)), apart)
    others, unused = np.empty(len(kind), np.int64), np.empty(len(kind), np.int64)
    many = a.strip.compiled(kind, origin, place, *sought.places.arrays, others, unused)
    chosen = np.ones(len(kind), np.bool_)
    chosen[others[:many]] = False
    rows = np.flatnonzero(chosen & (kind == DELIVER))[:LISTED]
    part = sought.part
    table = read(part.piece, ("position",)).slice(part.begin, part.end - part.begin)
    position = ints_of(table["position"], np.int64)[kept][rows]
    return list(zip(position.tolist(), origin[rows].tolist(), place[rows].tolist(), strict=True))


def broken(order: Order, tally: Tally, look: Pick) -> Broken:
    violations = order.count()
    doubts = 0 if order.complete else order.count(doubt=True)
    if not violations and not doubts:
        return Broken()
    doubt = not violations
    listed: list[tuple[int, int, tuple[int, int]]] = []
    first: Lacking | None = None
    for p in order.processes(doubt=doubt):
        those = order.broken_apart(p, doubt=doubt)
        hits: list[tuple[int, tuple[int, int], int | None]] = [
            (int(order.aside.at[m, p]), order.aside.names[m], None) for m in those
        ]
        for rows in look(_where(tally, p, order.broken(p, doubt=doubt))):
            hits += [(at, (o, tally.apart.number(o, place)), place) for at, o, place in rows]
        hits.sort(key=lambda hit: hit[0])
        if first is None:
            position, name, place = hits[0]
            first = order.explained(p, position, name, place, doubt=doubt)
        listed += [(p, position, name) for position, name, _ in hits]
        if len(listed) >= LISTED or doubt:
            break
    return Broken(violations, doubts, [] if doubt else listed[:LISTED], first)


def _where(tally: Tally, process: int, spans: list[Spans]) -> list[Sought]:
    """The segments of a process that have the first of these messages: enough to list them."""
    log = tally.logs[process]
    those = []
    for i, one in enumerate(log.segments):
        ends = zip(log.delivered[i].tolist(), log.delivered[i + 1].tolist(), strict=True)
        here = [
            both([(low + 1, high)], mine) if low < high else []
            for mine, (low, high) in zip(spans, ends, strict=True)
        ]
        if any(here):
            those.append((sum(map(size, here)), Sought(one.part, Apart(here))))
    enough = list(accumulate(many for many, _ in those))
    return [
        sought for before, (_, sought) in zip([0, *enough], those, strict=False) if before < LISTED
    ]
