"""What a row of a trace must be, for whole tables at once.

The rules are those of `trace.event`, on Arrow and numpy, so that millions of rows can be held to
them. Whatever keeps them comes out in the types of `trace.parquet.arrow_schema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.errors import TraceError
from ordercast.pipeline.kernels.kernel import Bools
from ordercast.trace.event import MESSAGE_KINDS, REQUIRED, Kind, no_kind
from ordercast.trace.parquet import arrow_schema

__all__ = ["COLUMNS", "check_schema", "flaws", "outside", "plain", "typed"]

COLUMNS = ("run", "process", "position", "kind", "origin", "number", "destinations")
"""What of a trace the judge looks at."""
_WORDS = pa.dictionary(pa.int32(), pa.string())
_TYPES = {field.name: field.type for field in arrow_schema()}
_NEVER_NULL = ("run", "process", "position", "kind")
_RANGES = {
    "process": (0, 2**31 - 1),
    "position": (0, 2**63 - 1),
    "origin": (0, 2**31 - 1),
    "number": (1, 2**63 - 1),
    "destinations": (0, 2**31 - 1),
}


def check_schema(schema: pa.Schema, where: str) -> None:
    """Raises a `TraceError` if a column is missing or of a type that no value could mend."""
    for name in REQUIRED:
        if name not in schema.names:
            raise TraceError(f"{where}: the column {name!r} is missing")
    for field in arrow_schema():
        if schema.names.count(field.name) > 1:
            raise TraceError(f"{where}: there are two columns {field.name!r}")
        found = schema.field(field.name).type if field.name in schema.names else pa.null()
        if pa.types.is_null(found) and field.name not in _NEVER_NULL:
            continue
        if _family(found) != _family(field.type):
            hint = "; pandas has Int64 for them" if pa.types.is_floating(found) else ""
            raise TraceError(
                f"{where}: the column {field.name!r} is of type {found}, not "
                f"{_family(field.type)}{hint}"
            )


def _family(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or _is_other_list(kind):
        return "a list of integers" if pa.types.is_integer(kind.value_type) else "another list"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "a string"
    return "an integer" if pa.types.is_integer(kind) else "something else"


def _is_other_list(kind: pa.DataType) -> bool:
    types = pa.types
    views = types.is_list_view(kind) or types.is_large_list_view(kind)
    return bool(views or types.is_fixed_size_list(kind))


def plain(table: pa.Table) -> pa.Table:
    """The same values in types that Arrow can compute with: there are writers that give a column
    of nulls no type, or text and lists one of the types that few of its functions know."""
    for place, field in enumerate(table.schema):
        kind = field.type
        if pa.types.is_null(kind) and field.name in _TYPES:
            kind = _TYPES[field.name]
        elif pa.types.is_string_view(kind):
            kind = pa.large_string()
        elif _is_other_list(kind):
            kind = pa.large_list(kind.value_type)
        if kind != field.type:
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table


def typed(table: pa.Table) -> pa.Table:
    """`COLUMNS`, each in its own type, run and kind as dictionaries. What does not fit its type
    means nothing afterwards, so look for `flaws` first."""
    table = plain(table)
    schema = arrow_schema()
    columns = []
    for name in COLUMNS:
        kind = _WORDS if name in ("run", "kind") else schema.field(name).type
        if name not in table.column_names:
            columns.append(pa.chunked_array([pa.nulls(len(table), kind)]))
        else:
            columns.append(_cast(table.column(name), kind))
    return pa.table(dict(zip(COLUMNS, columns, strict=True))).unify_dictionaries()


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    if kind != _WORDS:
        return column.cast(kind, safe=False)
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    return column.cast(_WORDS)


def flaws(table: pa.Table) -> list[tuple[int, str]]:
    """The rows that break a rule, in order, and what is wrong with each: its first flaw."""
    found: dict[int, str] = {}
    for broken, words in _rules(plain(table)):
        for row in np.flatnonzero(broken).tolist():
            if row not in found:
                found[row] = words if isinstance(words, str) else words(row)
    return sorted(found.items())


def _rules(table: pa.Table) -> Iterator[tuple[Bools, Any]]:
    """Each rule that some row breaks: which rows do, and the words for one."""

    def value(name: str, row: int) -> Any:
        return table.column(name)[row].as_py()

    for name in _NEVER_NULL:
        if table.column(name).null_count:
            yield _numpy(table.column(name).is_null()), f"not an event: {name} is null"
    for name, (least, most) in _RANGES.items():
        if name in table.column_names:
            outside = _outside(table.column(name), least, most)
            if outside is not None:
                yield outside, f"not an event: {name} must be from {least} to {most}"
    kind = _codes(table.column("kind"))
    yield kind < 0, lambda row: f"not an event: {no_kind(repr(value('kind', row)))}"
    message = (kind >= 0) & (kind < len(MESSAGE_KINDS))
    have_origin, have_number = (_numpy(table.column(n).is_valid()) for n in ("origin", "number"))
    yield (
        message & ~(have_origin & have_number),
        lambda row: f"a {value('kind', row)!r} row needs both origin and number",
    )
    sent = np.flatnonzero(kind == 0)
    if len(sent):
        origin, process = (
            pc.fill_null(table.column(n), 0).to_numpy() for n in ("origin", "process")
        )
        forged = np.zeros(len(table), np.bool_)
        forged[sent] = origin[sent] != process[sent]
        yield (
            forged,
            lambda row: (
                f"process {value('process', row)} cannot send a message whose origin is "
                f"{value('origin', row)}"
            ),
        )
    yield (
        (kind >= len(MESSAGE_KINDS)) & (have_origin | have_number),
        lambda row: (
            f"a {value('kind', row)!r} row has no message, so origin and number must be null"
        ),
    )


def _codes(column: pa.ChunkedArray) -> Any:
    """The kinds by number: messages first, -1 for what is none (a null is 0)."""
    order = [*MESSAGE_KINDS, *(word for word in get_args(Kind) if word not in MESSAGE_KINDS)]
    codes = [np.empty(0, np.int8)]
    for chunk in column.chunks:
        words = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        table = [order.index(w) if w in order else -1 for w in words.dictionary.to_pylist()]
        indices = pc.fill_null(words.indices, len(table)).to_numpy()
        codes.append(np.array([*table, 0], np.int8)[indices])
    return np.concatenate(codes)


def _outside(column: pa.ChunkedArray, least: int, most: int) -> Bools | None:
    """Which rows have a value out of range; None if none has."""
    lists = not pa.types.is_integer(column.type)
    values = pa.chunked_array([chunk.flatten() for chunk in column.chunks]) if lists else column
    ends = pc.min_max(values)
    within = ends["min"].as_py() is None or (
        ends["min"].as_py() >= least and ends["max"].as_py() <= most
    )
    if within and not (lists and values.null_count):
        return None
    if not lists:
        return outside(column, least, most)
    bad = [
        row is not None and any(one is None or not least <= one <= most for one in row)
        for row in column.to_pylist()
    ]
    return np.array(bad)


def outside(column: pa.ChunkedArray, least: int, most: int) -> Bools:
    """Which values are out of range; nulls are not. Arrow itself has no comparison for all types
    of integers: those without a sign can be more than what they are compared with."""
    values = pc.fill_null(column, pa.scalar(least, column.type)).to_numpy()
    return np.asarray((values < least) | (values > most), np.bool_)


def _numpy(column: pa.ChunkedArray) -> Bools:
    return np.asarray(column.to_numpy(), np.bool_)
