"""Rows as they leave the operator: with their position, their outcome, and why."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from ordercast.pipeline.kernels.held import EXPIRED, GAP, RELEASED, Fates
from ordercast.pipeline.kernels.kernel import Ints
from ordercast.pipeline.streaming.form import ADDED

__all__ = ["beside", "leaving", "told"]

_WORDS = {RELEASED: "released", GAP: "gap", EXPIRED: "expired"}


def leaving(rows: pa.Table, gone: Ints, fates: Fates, why: dict[int, str]) -> pa.Table:
    """Those that went, in their order; `why` is by row."""
    in_order = len(gone) == len(rows) and bool((gone == np.arange(len(rows))).all())
    places, outcomes = fates.place[gone], fates.outcome[gone]
    words = pa.array([_WORDS.get(outcome, "") for outcome in range(len(_WORDS) + 2)])
    return _with_added(
        rows if in_order else rows.take(gone),
        pa.array(places, mask=places < 0),
        words.take(pa.array(outcomes)),
        pa.array([why.get(row) for row in gone.tolist()], pa.string())
        if why
        else pa.nulls(len(gone), pa.string()),
    )


def beside(rows: pa.Table, outcome: str, why: Iterable[str]) -> pa.Table:
    """Rows that are no part of the order."""
    count = len(rows)
    words = pa.array([outcome] * count, pa.string())
    return _with_added(rows, pa.nulls(count, pa.int64()), words, pa.array(why, pa.string()))


def told(schema: pa.Schema, words: str) -> pa.Table:
    """A row that is no message, and so has no outcome."""
    nothing = pa.table([pa.nulls(1, kind) for kind in schema.types], schema.names)
    null = pa.nulls(1, pa.string())
    return _with_added(nothing, pa.nulls(1, pa.int64()), null, pa.array([words]))


def _with_added(rows: pa.Table, *columns: pa.Array) -> pa.Table:
    for name, column in zip(ADDED, columns, strict=True):
        rows = rows.append_column(name, column)
    return rows
