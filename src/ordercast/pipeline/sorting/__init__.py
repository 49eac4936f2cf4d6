"""Batch causal order: stamped messages of any number, put by one sort into an order that extends
causality.

If m is known to m', every entry of its stamp is at most that of m', and one is less; so the sum of
the stamps rises along causality, and sorting by (sum, origin, number) puts causes before effects.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.sorting.check import check_order
from ordercast.pipeline.sorting.columns import (
    FLAW,
    PART,
    SUM,
    Columns,
    keyed,
    refuse_flaw,
    require_columns,
)
from ordercast.pipeline.sorting.names import cols, exact_names
from ordercast.pipeline.sorting.ordered import Partitions
from ordercast.pipeline.sorting.ranges import cuts, part_of, survey

__all__ = ["ROWS_EACH", "causal_sort"]

ROWS_EACH = 1 << 18
"""Rows of a part, about: what a task sorts, and a file holds."""
_IN_PARTITION = (1 << 33) - 1
"""The bits of Spark's increasing ids that count rows; those above are the partition."""


def causal_sort(
    frame: DataFrame,
    *,
    group: str | None = None,
    origin: str = "origin",
    number: str = "number",
    stamp: str = "stamp",
    position: str = "position",
    rows_each: int = ROWS_EACH,
    check: bool = True,
) -> DataFrame:
    """The same rows in causal order, with their place in it as a column `position`, from 0.

    Partitions follow each other, and rows lie in order within each; parts that are cut from the
    same rows are the same, however those were shuffled. Groups, if there are any, come one after
    the other. With `check`, raises a `TraceError` with a witness if the stamps contradict each
    other, or a message is there twice. Without, both go unnoticed.

    in: origin, number (from 1), and a stamp: an array<long> whose index is the origin, or a map
    from origin to long; see `columns.py`
    """
    columns = Columns(origin, number, stamp, group)
    require_columns(frame, columns)
    if position in frame.columns:
        raise UsageError(
            f"there is a column {position!r} already: choose another name for the place"
        )
    with exact_names(frame.sparkSession):
        return _sorted(frame, columns, position, rows_each, check=check)


def _sorted(
    frame: DataFrame, columns: Columns, position: str, rows_each: int, *, check: bool
) -> DataFrame:
    messages = keyed(frame, columns)
    found = survey(messages, columns)
    if found.flawed:
        refuse_flaw(messages, columns)
    starts = cuts(found, rows_each)
    placed = messages.withColumn(PART, part_of(messages, columns, starts)).drop(FLAW)
    if check:
        _require_order(placed.select(*cols(columns.names), SUM, PART), columns, len(starts) + 1)
    sizes = {row[PART]: row["count"] for row in placed.groupBy(PART).count().collect()}
    sorted_parts = _in_parts(placed, columns, len(starts) + 1)
    return sorted_parts.withColumn(position, _place(sizes, len(starts) + 1)).drop(SUM, PART)


def _in_parts(placed: DataFrame, columns: Columns, parts: int) -> DataFrame:
    return placed.repartitionById(parts, F.col(PART)).sortWithinPartitions(*cols(columns.order))


def _place(sizes: dict[int, int], parts: int) -> Column:
    """A row's place: how many are in the parts before, and before it in its own."""
    before, total = [], 0
    for part in range(parts):
        before.append(total)
        total += sizes.get(part, 0)
    start = F.get(F.array(*(F.lit(rows).cast("long") for rows in before)), F.col(PART))
    return start + F.monotonically_increasing_id().bitwiseAND(F.lit(_IN_PARTITION))


def _require_order(keys: DataFrame, columns: Columns, parts: int) -> None:
    ordered = _in_parts(keys, columns, parts).select(*cols(columns.names)).persist()
    try:
        checked = check_order(Partitions(ordered), columns)
    finally:
        ordered.unpersist()
    if checked.sentence is not None:
        raise TraceError(f"the stamps cannot be right: {checked.sentence}")
