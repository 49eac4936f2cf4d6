"""The smallest cycle of messages that come before each other, where some are set apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ordercast.pipeline.huge.apart import Apart
from ordercast.pipeline.huge.compared import Compared, Message
from ordercast.pipeline.huge.found import Name, Pair
from ordercast.pipeline.huge.ties import Tied, points
from ordercast.pipeline.kernels.cycles import components, shortest_cycle
from ordercast.pipeline.kernels.run import PATIENCE

__all__ = ["Cycle", "cycle_of", "two_of"]

Cycle = list[tuple[tuple[int, int], int]]
"""Messages by origin and number, and who has each before the next one."""


def two_of(apart: Apart, regular: Pair | None, compared: Compared | None = None) -> Cycle:
    """The smallest pair of messages that come before each other, if there is one; `regular` is the
    smallest of two regular messages."""
    found = [] if regular is None else [(regular.m, regular.n, regular.forth, regular.back)]
    if compared is None:
        return [
            ((m[0], apart.number(*m)), who)
            for a, b, forth, back in found
            for m, who in ((a, forth), (b, back))
        ]

    def name(message: Message) -> tuple[int, int]:
        if isinstance(message, tuple):
            return message[0], apart.number(*message)
        return compared.aside.names[message]

    partners = {x: list(compared.partners(x)) for x in range(len(compared.first))}
    those: set[Message] = {x for x, others in partners.items() if others}
    those |= {other for others in partners.values() for other in others}
    those |= {regular.m} if regular is not None else set()
    if not those:
        return []
    m = min(those, key=name)
    if isinstance(m, tuple):
        others = [x for x in partners if compared.shown(m, x) is not None]
        others = [x for x in others if compared.shown(x, m) is not None]
        seconds: list[Message] = [*others]
        if regular is not None and m == regular.m:
            seconds.append(regular.n)
    else:
        seconds = partners[m]
    n = min(seconds, key=name)
    if isinstance(m, tuple) and isinstance(n, tuple):
        assert regular is not None
        return [(name(m), regular.forth), (name(n), regular.back)]
    forth, back = compared.shown(m, n), compared.shown(n, m)
    assert forth is not None
    assert back is not None
    return [(name(m), forth), (name(n), back)]


def cycle_of(compared: Compared, tied: Tied, apart: Apart, regular: Sequence[Name]) -> Cycle:
    """The shortest cycle, if no two messages show one.

    in: the regular messages of all groups in the order of the reference. As no two messages
    contradict each other, every process has them in that order.
    """
    tangled = [x for those, _ in tied.groups for x in those]
    names = [(o, apart.number(o, place)) for o, place in regular]
    names += [compared.aside.names[x] for x in tangled]
    chains = [_chain(compared, p, regular, tangled) for p in range(compared.aside.members)]
    entries = np.array([m for chain in chains for m in chain], np.int32)
    begin = np.cumsum([0, *map(len, chains)])
    knot = np.zeros(len(names), np.int32)
    components(entries, begin, knot, np.empty_like(knot))
    origins, counted = (np.array(column) for column in zip(*names, strict=True))
    untangled = np.zeros(len(names), np.bool_)
    way = shortest_cycle(entries, begin, origins, counted, untangled, knot, PATIENCE)
    return [(names[m], p) for m, p in way.tolist()]


def _chain(compared: Compared, p: int, regular: Sequence[Name], apart: list[int]) -> list[int]:
    """What a process has of these messages; those set apart are counted after the regular ones."""
    mine = [m for m, (o, place) in enumerate(regular) if _has(compared, p, o, place)]
    where = {x: len(regular) + i for i, x in enumerate(apart)}
    chain: list[int] = []
    for _, x in points(compared, p, apart):
        while mine and compared.is_before(p, regular[mine[0]], x):
            chain.append(mine.pop(0))
        chain.append(where[x])
    return chain + mine


def _has(compared: Compared, p: int, origin: int, place: int) -> bool:
    return bool(
        place <= compared.ends[p, origin]
        or (compared.with_sends and p == origin and place <= compared.own_ends[p])
    )
