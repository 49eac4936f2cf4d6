"""What a Parquet trace must be: its columns' types, and the rules for each row.

The rules are those of `trace.event`, as columns, so that Spark can hold millions of rows to them.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as F

from ordercast.errors import TraceError
from ordercast.trace.event import MESSAGE_KINDS, REQUIRED, Kind

__all__ = ["COLUMNS", "Columns", "columns_of", "flaw", "typed"]

COLUMNS = {
    "run": "string",
    "process": "int",
    "position": "bigint",
    "kind": "string",
    "origin": "int",
    "number": "bigint",
    "destinations": "array<int>",
    "time_us": "bigint",
    "bytes": "int",
    "control_bytes": "int",
}
Columns = tuple[tuple[str, str], ...]
"""Names, with the types that a file gives them, in Spark's words."""

_INTEGERS = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
}
_KINDS = get_args(Kind)
_NEVER_NULL = ("run", "process", "position", "kind")
_LIMITS = {"int": 2**31 - 1, "bigint": 2**63 - 1}


def columns_of(file: Path) -> Columns:
    """The trace's columns that a Parquet file has, after a look at their types in its footer."""
    try:
        schema = pq.read_schema(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise TraceError(f"{file}: not a readable Parquet file: {error}") from None
    for name in REQUIRED:
        if name not in schema.names:
            raise TraceError(f"{file}: the column {name!r} is missing")
    present = []
    for name, wanted in COLUMNS.items():
        found = schema.field(name).type if name in schema.names else pa.null()
        if pa.types.is_null(found) and name not in _NEVER_NULL:
            continue
        kind = _spark_type(found)
        if kind is None or _family(kind) != _family(wanted):
            raise TraceError(
                f"{file}: the column {name!r} is of type {found}, not {_family(wanted)}"
            )
        present.append((name, kind))
    return tuple(present)


def _spark_type(found: pa.DataType) -> str | None:
    """What Spark calls a type that a trace can have; of integers any width will do, because a
    value that is too large is its row's flaw, not the column's."""
    if pa.types.is_dictionary(found):
        return _spark_type(found.value_type)
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        element = _spark_type(found.value_type)
        return None if element is None else f"array<{element}>"
    if pa.types.is_string(found) or pa.types.is_large_string(found):
        return "string"
    return _INTEGERS.get(str(found))


def _family(kind: str) -> str:
    if kind.startswith("array<"):
        return "a list of integers" if _family(kind[6:-1]) == "an integer" else "another list"
    return "a string" if kind == "string" else "an integer"


def typed(columns: Columns) -> list[Column]:
    """Every column of the trace, in its own type; null where the file has no such column."""
    present = dict(columns)

    def one(name: str, kind: str) -> Column:
        if name not in present:
            return F.lit(None).cast(kind).alias(name)
        if present[name] == kind:
            return F.col(name)
        # A value that does not fit becomes null, not an error: `flaw` will tell of it.
        return F.col(name).try_cast(kind).alias(name)

    return [one(name, kind) for name, kind in COLUMNS.items()]


def flaw(columns: Columns) -> Column:
    """What is wrong with a row as it was read, or null. out: flaw"""
    present = dict(columns)
    kind = F.col("kind")
    origin, number = (
        F.col(name) if name in present else F.lit(None) for name in ("origin", "number")
    )
    is_message = kind.isin(*MESSAGE_KINDS)
    needs = F.concat(F.lit("a '"), kind, F.lit("' row needs both origin and number"))
    forged = F.concat(
        F.lit("process "),
        F.col("process"),
        F.lit(" cannot send a message whose origin is "),
        origin,
    )
    none = F.concat(
        F.lit("a '"), kind, F.lit("' row has no message, so origin and number must be null")
    )
    return F.coalesce(
        *(
            F.when(F.col(name).isNull(), F.lit(f"not an event: {name} is null"))
            for name in _NEVER_NULL
        ),
        *(_flaw_of_range(name) for name in present if name not in ("run", "kind")),
        F.when(
            ~kind.isin(*_KINDS),
            F.concat(F.lit("not an event: there is no kind '"), kind, F.lit("'")),
        ),
        F.when(is_message & (origin.isNull() | number.isNull()), needs),
        F.when((kind == "send") & (origin != F.col("process")), forged),
        F.when(~is_message & (origin.isNotNull() | number.isNotNull()), none),
    ).alias("flaw")


def _flaw_of_range(name: str) -> Column:
    least = 1 if name == "number" else 0
    most = _LIMITS.get(COLUMNS[name], _LIMITS["int"])
    words = F.lit(f"not an event: {name} must be from {least} to {most}")
    value = F.col(name)
    if name != "destinations":
        return F.when(~value.between(least, most), words)
    return F.when(F.exists(value, lambda one: one.isNull() | ~one.between(least, most)), words)
