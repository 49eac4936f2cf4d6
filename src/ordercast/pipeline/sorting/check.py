"""Does a sorted data set extend causality? Seen from the rows as they lie, not from how they got
there.

It does if no message comes after one whose stamp knows it: a total order that keeps every stamp's
own claims keeps everything that follows from them. Beside that, stamps can contradict each other:
one that knows a message must know all that this one knew. Then some of them are wrong, and an order
by them is worth as much as they are.

Each part is looked at twice, by itself: for what its last group knows in the end, and, with what
the parts before it knew, for what is out of order. Stamps are compared where both lie in the same
part, which is nearly always so; the rest is joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.pipeline.sorting.chunk import chunk_of
from ordercast.pipeline.sorting.columns import Columns
from ordercast.pipeline.sorting.names import col, cols
from ordercast.pipeline.sorting.ordered import Ordered
from ordercast.pipeline.sorting.witness import Checked, contradiction, lateness

__all__ = ["carried", "check_order", "look", "summed"]

_KNOWN = "part int, first string, last string, names array<string>, counts array<bigint>"
_ARROW_KNOWN = pa.schema(
    {
        "part": pa.int32(),
        "first": pa.string(),
        "last": pa.string(),
        "names": pa.list_(pa.string()),
        "counts": pa.list_(pa.int64()),
    }
)
_TOLD = T.StructType(
    [
        T.StructField("_causal_kind", T.StringType()),
        T.StructField("_causal_place", T.LongType()),
        T.StructField("_causal_count", T.LongType()),
        T.StructField("_causal_seen_origin", T.StringType()),
        T.StructField("_causal_seen_number", T.LongType()),
    ]
)
_THEIR = "_causal_their_"
_PLACES = 40
"""Bits for a row's place in its part."""

Known = dict[str, int]
"""For origins, the greatest number that is known of."""
Told = tuple[str, int, str | None, int | None]


def check_order(data: Ordered, columns: Columns) -> Checked:
    """What is wrong with the order, or with the stamps, if anything is."""
    known = _known_before(data, columns)
    schema = T.StructType([*_TOLD, *_fields(data, columns)])
    told = data.each(partial(look, columns=columns, known=known), schema).persist()
    try:
        return _concluded(data, columns, told)
    finally:
        told.unpersist()


def _fields(data: Ordered, columns: Columns) -> list[T.StructField]:
    return [data.frame.schema[name] for name in columns.names]


def _known_before(data: Ordered, columns: Columns) -> dict[int, Known]:
    """For each part, what its first group knew at the end of the part before."""
    return carried(data.each(partial(summed, columns=columns), _KNOWN).collect())


def carried(found: Iterable[Row | dict[str, Any]]) -> dict[int, Known]:
    """The same, from what `summed` says of each part."""
    before: dict[int, Known] = {}
    group, known = None, Known()
    for row in sorted(found, key=lambda row: row["part"]):
        before[row["part"]] = dict(known) if row["first"] == group else {}
        if not row["first"] == row["last"] == group:
            known = {}
        for name, count in zip(row["names"], row["counts"], strict=True):
            known[name] = max(known.get(name, 0), count)
        group = row["last"]
    return before


def summed(part: int, table: pa.Table, *, columns: Columns) -> Iterator[pa.RecordBatch]:
    """What the last group of a part knows of it in the end: `_KNOWN`."""
    _, known = chunk_of(table, columns).walk({})
    ends = [_group(table, columns, row) for row in (0, len(table) - 1)]
    row = [part, *ends, list(known), list(known.values())]
    yield pa.RecordBatch.from_pylist(
        [dict(zip(_ARROW_KNOWN.names, row, strict=True))], _ARROW_KNOWN
    )


def _group(table: pa.Table, columns: Columns, row: int) -> str:
    return "" if columns.group is None else str(table[columns.group][row].as_py())


def look(
    part: int, table: pa.Table, *, columns: Columns, known: dict[int, Known]
) -> Iterator[pa.RecordBatch]:
    """What there is to say of a part: how much was compared (`tally`), the first message that is
    late and how many are, the first with a wrong stamp, and what to compare elsewhere (`ask`).

    out: `_TOLD`, and the message that it is about
    """
    chunk = chunk_of(table, columns)
    late, _ = chunk.walk(known[part])
    compared = chunk.compare()
    rows = [0]
    told: list[Told] = [("tally", compared.compared, None, None)]
    if late.any():
        rows.append(int(late.argmax()))
        told.append(("late", int(late.sum()), None, None))
    if compared.first is not None:
        row, seen = compared.first
        rows.append(row)
        told.append(("wrong", 1, chunk.name(seen), int(chunk.numbers[seen])))
    rows += compared.asking.tolist()
    asked = zip(compared.origins, compared.numbers.tolist(), strict=True)
    told += [("ask", 1, origin, int(number)) for origin, number in asked]
    kinds, counts, origins, numbers = zip(*told, strict=True)
    places = (part << _PLACES) + np.array(rows)
    columns_told = (kinds, places, counts, origins, numbers)
    about = table.select(columns.names).take(pa.array(rows))
    arrays = map(pa.array, columns_told, to_arrow_schema(_TOLD).types)
    names = [*_TOLD.names, *columns.names]
    yield from pa.table([*arrays, *about.columns], names).combine_chunks().to_batches()


def _concluded(data: Ordered, columns: Columns, told: DataFrame) -> Checked:
    here = told.where(F.col("_causal_kind") != "ask").collect()
    asked = told.where(F.col("_causal_kind") == "ask")
    elsewhere, first = _compare_elsewhere(data, columns, asked)
    compared, late_count = (
        sum(row["_causal_count"] for row in here if row["_causal_kind"] == kind)
        for kind in ("tally", "late")
    )
    flaws = [row for row in here if row["_causal_kind"] == "wrong"] + ([first] if first else [])
    late = [row for row in here if row["_causal_kind"] == "late"]
    sentence = None
    if late:
        sentence = lateness(data.frame, columns, _earliest(late))
    elif flaws:
        sentence = contradiction(data.frame, columns, _earliest(flaws))
    return Checked(compared + elsewhere, late_count, sentence)


def _earliest(rows: list[Row]) -> Row:
    return min(rows, key=lambda row: int(row["_causal_place"]))


def _compare_elsewhere(data: Ordered, columns: Columns, asked: DataFrame) -> tuple[int, Row | None]:
    """How many stamps were compared with one of another part, and the first that is wrong."""
    theirs = data.frame.select(*(col(name).alias(f"{_THEIR}{name}") for name in columns.names))
    same = (col(f"{_THEIR}{columns.origin}").cast("string") == F.col("_causal_seen_origin")) & (
        col(f"{_THEIR}{columns.number}") == F.col("_causal_seen_number")
    )
    if columns.group is not None:
        same &= col(columns.group) == col(f"{_THEIR}{columns.group}")
    wrong = F.col("_causal_wrong")
    paired = asked.join(theirs, same).withColumn("_causal_wrong", _is_above(data.frame, columns))
    shown = F.struct(*_TOLD.names, *cols(columns.names))
    [row] = paired.agg(
        F.count(F.lit(1)).alias("compared"),
        F.min_by(F.when(wrong, shown), F.when(wrong, F.col("_causal_place"))).alias("first"),
    ).collect()
    return row["compared"], row["first"]


def _is_above(frame: DataFrame, columns: Columns) -> Column:
    """Has the stamp of the other an entry that is larger than our own? Our own entry is left to the
    walk: a map need not have it."""
    theirs, ours = col(f"{_THEIR}{columns.stamp}"), col(columns.stamp)
    if isinstance(frame.schema[columns.stamp].dataType, T.ArrayType):
        pairs = F.zip_with(
            theirs, ours, lambda one, two: F.coalesce(one, F.lit(0)) > F.coalesce(two, F.lit(0))
        )
        return F.exists(pairs, lambda larger: larger)
    me = col(columns.origin).cast("string")
    return F.exists(
        F.map_entries(theirs),
        lambda entry: (
            (entry["key"].cast("string") != me)
            & (entry["value"] > F.coalesce(F.try_element_at(ours, entry["key"]), F.lit(0)))
        ),
    )
