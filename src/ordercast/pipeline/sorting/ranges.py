"""Where to cut a data set into parts that follow each other.

Spark's own range partitioning samples by where rows happen to lie. Here a row is in the sample by
what it says, so the same messages are cut at the same places, however they were shuffled and
whatever machines sort them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from ordercast.pipeline.sorting.columns import FLAW, Columns
from ordercast.pipeline.sorting.names import col, cols

__all__ = ["Survey", "cuts", "part_of", "survey"]

SAMPLE = 1 << 15
"""Rows to choose cuts from."""


class Survey(NamedTuple):
    """What one look at a data set tells."""

    rows: int
    flawed: int
    sample: list[tuple[Any, ...]]
    """The sort keys of some rows, in order."""


def survey(frame: DataFrame, columns: Columns) -> Survey:
    """in: what `columns.keyed` gives"""
    seen = Observation()
    counted = frame.observe(seen, F.count(F.lit(1)).alias("rows"), F.count(FLAW).alias("flawed"))
    drawn = F.xxhash64(*(col(name).cast("string") for name in columns.identity))
    kept = counted.orderBy(drawn).limit(SAMPLE).select(*cols(columns.order))
    found = [tuple(row) for row in kept.collect()]
    rows, flawed = seen.get["rows"], seen.get["flawed"]
    return Survey(rows, flawed, [] if flawed else sorted(set(found)))


def cuts(found: Survey, rows_each: int) -> list[tuple[Any, ...]]:
    """The keys that each part but the first begins with, for parts of about that many rows."""
    parts = min(-(-found.rows // rows_each), len(found.sample))
    size = len(found.sample)
    return [found.sample[size * part // parts] for part in range(1, parts)]


def part_of(frame: DataFrame, columns: Columns, starts: Sequence[tuple[Any, ...]]) -> Column:
    """The number of the part that a row belongs to, by bisection."""
    types = [frame.schema[name].dataType for name in columns.order]
    key = F.struct(*cols(columns.order))

    def start(index: int) -> Column:
        values = zip(columns.order, starts[index], types, strict=True)
        return F.struct(*(F.lit(value).cast(type).alias(name) for name, value, type in values))

    def between(low: int, high: int) -> Column:
        if low == high:
            return F.lit(low)
        middle = (low + high) // 2
        below = key < start(middle)
        return F.when(below, between(low, middle)).otherwise(between(middle + 1, high))

    return between(0, len(starts))
