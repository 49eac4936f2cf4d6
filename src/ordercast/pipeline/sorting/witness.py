"""What a check found, in a sentence that names two messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ordercast.errors import TraceError
from ordercast.pipeline.sorting.columns import Columns, name_of
from ordercast.pipeline.sorting.names import col, cols

__all__ = ["Checked", "contradiction", "lateness"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was looked at, and what is wrong with it."""

    compared: int
    """Stamps that were held against that of a message they know."""
    late: int
    """Messages that come after one that knows them."""
    sentence: str | None
    """About the first one that is late, or else the first stamp that knows a message and not all
    that this one knew."""

    @property
    def holds(self) -> bool:
        return self.sentence is None


def lateness(frame: DataFrame, columns: Columns, late: Row) -> str:
    """Who it is that a message comes too late after."""
    row = late.asDict()
    if _named(frame, columns, row).count() > 1:
        raise TraceError(f"message {name_of(row, columns)} is there more than once")
    others = _of_group(frame, columns, row).where(
        _entry(frame, columns, row[columns.origin]) >= row[columns.number]
    )
    others = others.where(col(columns.origin).cast("string") != str(row[columns.origin]))
    found = others.orderBy(*cols([columns.origin, columns.number])).take(1)
    knows = name_of(found[0].asDict(), columns) if found else "another message of its origin"
    return f"{name_of(row, columns)} comes after {knows}, whose stamp knows it already"


def contradiction(frame: DataFrame, columns: Columns, wrong: Row) -> str:
    """What a message should have known and does not."""
    row = wrong.asDict()
    seen = row | {
        columns.origin: row["_causal_seen_origin"],
        columns.number: row["_causal_seen_number"],
    }
    [other] = _named(frame, columns, seen).take(1)
    own, theirs = _counts(row[columns.stamp]), _counts(other[columns.stamp])
    own[str(row[columns.origin])] = row[columns.number]
    forgotten = min(one for one, count in theirs.items() if count > own.get(one, 0))
    before = str(row[columns.origin]) == str(seen[columns.origin])
    verb = "follows" if before else "knows"
    return (
        f"{name_of(row, columns)} {verb} {seen[columns.origin]}:{seen[columns.number]}, which knew "
        f"{forgotten}:{theirs[forgotten]}, but it knows only {forgotten}:{own.get(forgotten, 0)}"
    )


def _of_group(frame: DataFrame, columns: Columns, row: dict[str, Any]) -> DataFrame:
    return frame if columns.group is None else frame.where(col(columns.group) == row[columns.group])


def _named(frame: DataFrame, columns: Columns, row: dict[str, Any]) -> DataFrame:
    return _of_group(frame, columns, row).where(
        (col(columns.origin).cast("string") == str(row[columns.origin]))
        & (col(columns.number) == row[columns.number])
    )


def _entry(frame: DataFrame, columns: Columns, origin: object) -> Column:
    kind = frame.schema[columns.stamp].dataType
    if isinstance(kind, T.MapType):
        return F.try_element_at(col(columns.stamp), F.lit(origin).cast(kind.keyType))
    return F.get(col(columns.stamp), F.lit(origin))


def _counts(stamp: list[int] | dict[Any, int]) -> dict[str, int]:
    if isinstance(stamp, list):
        return {str(origin): count for origin, count in enumerate(stamp)}
    return {str(origin): count for origin, count in stamp.items()}
