"""Who owes the delivery of which message: validity and the two agreements."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import NamedTuple

import numpy as np

from ordercast.pipeline.huge.aside import Aside
from ordercast.pipeline.huge.tally import Tally
from ordercast.pipeline.kernels.kernel import Bools, Ints

__all__ = ["Debt", "debts"]


class Debt(NamedTuple):
    """A delivery that is owed and was not made."""

    process: int
    message: tuple[int, int]
    by: int
    """Whose deed obliges the process."""


def debts(name: str, tally: Tally, aside: Aside | None) -> tuple[int, int, Iterator[Debt]]:
    """How many deliveries are owed; how many of them were not made; and those, by process and
    message."""
    due = _due(name, tally)
    # Everyone has delivered a beginning of what each origin sent: only how far it goes counts.
    missing = np.maximum(due - tally.delivered, 0) * (due > 0)
    owed, unmet = int(due.sum()), int(missing.sum())
    rest = _regular(name, tally, missing)
    if aside is not None:
        demanded, because = _due_apart(name, tally.up, aside)
        lacking = demanded & ~aside.delivered
        owed += int(np.count_nonzero(demanded))
        unmet += int(np.count_nonzero(lacking))
        more = [Debt(q, aside.names[m], int(because[m])) for m, q in np.argwhere(lacking).tolist()]
        rest = merge(rest, sorted(more))
    return owed, unmet, rest


def _due(name: str, tally: Tally) -> Ints:
    """process × origin: how many regular messages it owes it to someone to deliver."""
    up = tally.up
    if name == "validity":
        return np.diag(np.where(up, tally.sent, 0))
    those = tally.delivered[up] if name == "agreement" else tally.delivered
    most = those.max(axis=0, initial=0)
    return np.where(up[:, None], most[None, :], 0)


def _due_apart(name: str, up: Bools, aside: Aside) -> tuple[Bools, Ints]:
    """message × process: who owes its delivery; and because of whom."""
    owed = aside.to & up
    if name == "validity":
        mine = np.arange(len(owed))
        itself = aside.to[mine, aside.origin]
        alone = np.zeros(owed.shape, np.bool_)
        alone[mine, aside.origin] = itself
        demanded = np.where(itself[:, None], alone, owed) & up[aside.origin][:, None]
        return demanded, aside.origin
    had = aside.delivered & np.logical_or(up, name == "uniform_agreement")
    someone = np.any(had, axis=1, keepdims=True)
    return owed & someone, had.argmax(axis=1)


def _regular(name: str, tally: Tally, missing: Ints) -> Iterator[Debt]:
    delivered = tally.delivered
    for q, o in np.argwhere(missing).tolist():
        first = int(delivered[q, o]) + 1
        for place in range(first, first + int(missing[q, o])):
            had = (delivered[:, o] >= place) & (tally.up | (name == "uniform_agreement"))
            by = o if name == "validity" else int(np.argmax(had))
            yield Debt(q, (o, tally.apart.number(o, place)), by)
