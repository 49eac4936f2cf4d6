"""Which columns say what a stamped message is, and what is wrong with a row that does not.

A stamp V says how many messages of each origin its sender knew: an array whose index is the origin,
or a map from origin to count. Its own entry is `number` (the message counts itself) or one less
(what was delivered before it was sent); both are taken for `number`, so that a message's stamp is
above that of everything it knows, and its sum is larger.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.sorting.names import col, cols

__all__ = ["FLAW", "PART", "SUM", "Columns", "keyed", "name_of", "require_columns"]

SUM, FLAW, PART = "_causal_sum", "_causal_flaw", "_causal_part"
"""Columns of our own, which are gone at the end."""

LARGEST = 1 << 48
"""No count is larger, so that the sum of thirty thousand of them is a long."""
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_COMPOSED = (T.ArrayType, T.MapType, T.StructType)


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns that matter; everything else travels along."""

    origin: str = "origin"
    number: str = "number"
    stamp: str = "stamp"
    group: str | None = None
    """Messages of different groups have nothing to do with each other."""

    def __post_init__(self) -> None:
        called: dict[str, str] = {}
        for field in ("group", "origin", "number", "stamp"):
            name = getattr(self, field)
            if name in called:
                raise UsageError(f"the column {name!r} cannot be both {called[name]} and {field}")
            if name is not None:
                called[name] = field

    @property
    def names(self) -> list[str]:
        own = [self.origin, self.number, self.stamp]
        return own if self.group is None else [self.group, *own]

    @property
    def identity(self) -> list[str]:
        """What no two rows may have in common."""
        return [name for name in self.names if name != self.stamp]

    @property
    def order(self) -> list[str]:
        """What to sort by: a message's stamp has a larger sum than any that it knows of."""
        return [*([] if self.group is None else [self.group]), SUM, self.origin, self.number]


def require_columns(frame: DataFrame, columns: Columns) -> None:
    """Raises an error that says which column is missing, or of the wrong type."""
    types = {field.name: field.dataType for field in frame.schema}
    if not types:
        raise TraceError("there is no row in it")
    for field in ("group", "origin", "number", "stamp"):
        name = getattr(columns, field)
        if name is not None and name not in types:
            there = ", ".join(one if one.isprintable() else repr(one) for one in types)
            raise UsageError(f"there is no column {name!r} for {field}: it has {there:.300}")
    if columns.group is not None and isinstance(types[columns.group], _COMPOSED):
        raise UsageError(
            f"the column {columns.group!r} cannot tell groups apart: it is a list or a record"
        )
    stamp, origin = types[columns.stamp], types[columns.origin]
    if not isinstance(types[columns.number], _WHOLE):
        raise UsageError(_wrong(columns.number, types[columns.number], "whole numbers"))
    if isinstance(stamp, T.ArrayType) and isinstance(stamp.elementType, _WHOLE):
        if not isinstance(origin, _WHOLE):
            raise UsageError(_wrong(columns.origin, origin, "places in the stamp, which is a list"))
    elif isinstance(stamp, T.MapType) and isinstance(stamp.valueType, _WHOLE):
        if not isinstance(origin, (*_WHOLE, T.StringType)):
            raise UsageError(_wrong(columns.origin, origin, "names or whole numbers"))
    else:
        expected = "a list of whole numbers, or a map from origins to whole numbers"
        raise UsageError(_wrong(columns.stamp, stamp, expected))


def _wrong(name: str, found: T.DataType, expected: str) -> str:
    return f"the column {name!r} is of type {found.simpleString()}, and {expected} are expected"


def keyed(frame: DataFrame, columns: Columns) -> DataFrame:
    """in: the columns of `Columns`
    out: the same, and `SUM`, the sum of the stamp; and `FLAW`, what is wrong, if anything is"""
    counts, own = _counts(frame, columns), _own(frame, columns)
    number = col(columns.number).cast("long")
    total = F.aggregate(counts, F.lit(0).cast("long"), lambda so_far, count: so_far + count)
    raised = total - F.coalesce(own, F.lit(0)) + number
    flaw = _flaw(frame, columns, counts, own, total)
    return frame.withColumn(FLAW, flaw).withColumn(
        SUM, F.when(F.col(FLAW).isNull(), raised).otherwise(F.lit(0))
    )


def _counts(frame: DataFrame, columns: Columns) -> Column:
    stamp = col(columns.stamp)
    kept = stamp if _is_list(frame, columns) else F.map_values(stamp)
    return kept.cast("array<bigint>")


def _own(frame: DataFrame, columns: Columns) -> Column:
    stamp, origin = col(columns.stamp), col(columns.origin)
    if _is_list(frame, columns):
        return F.get(stamp, origin).cast("long")
    key = frame.schema[columns.stamp].dataType.keyType  # type: ignore[attr-defined]
    return F.try_element_at(stamp, origin.cast(key)).cast("long")


def _is_list(frame: DataFrame, columns: Columns) -> bool:
    return isinstance(frame.schema[columns.stamp].dataType, T.ArrayType)


def _flaw(frame: DataFrame, columns: Columns, counts: Column, own: Column, total: Column) -> Column:
    """The first thing that is wrong with a row, in words; null if nothing is."""
    origin, number = col(columns.origin), col(columns.number)
    rules = [(col(name).isNull(), F.lit(f"its {name} is null")) for name in columns.names]
    rules += [
        (
            (number < 1) | (number > LARGEST),
            _words("numbers count from 1, and its own is ", number),
        ),
        (F.array_min(counts) < 0, F.lit("an entry of its stamp is negative")),
        (F.array_max(counts) > LARGEST, F.lit("an entry of its stamp is too large")),
    ]
    if _is_list(frame, columns):
        size = F.size(col(columns.stamp))
        short = _words("its stamp has ", size, " entries, from 0 on, and none for origin ", origin)
        rules.append(((origin < 0) | (origin >= size), short))
    # Only now: a rule is looked at where those before it are kept.
    rules.append((total.isNull(), F.lit("an entry of its stamp is null")))
    counted = _words("its own entry counts something else than messages: it is ", own)
    rules.append((~own.isin(number, number - 1), counted))
    flaw = F.lit(None).cast("string")
    for broken, words in reversed(rules):
        flaw = F.when(broken, words).otherwise(flaw)
    return flaw


def _words(*parts: str | Column) -> Column:
    return F.concat(*(F.lit(one) if isinstance(one, str) else one.cast("string") for one in parts))


def name_of(row: dict[str, object], columns: Columns) -> str:
    """How a person calls a message: `origin:number`, and its group if there are any."""
    message = f"{row[columns.origin]}:{row[columns.number]}"
    return message if columns.group is None else f"{message} of group {row[columns.group]}"


def refuse_flaw(frame: DataFrame, columns: Columns) -> None:
    """Raises an error about the first row, by name, that cannot be used.

    in: what `keyed` gives
    """
    wrong = frame.where(F.col(FLAW).isNotNull()).select(*cols(columns.identity), FLAW)
    [row] = wrong.orderBy(*(col(name).asc_nulls_last() for name in columns.identity)).take(1)
    raise TraceError(f"message {name_of(row.asDict(), columns)}: {row[FLAW]}")
