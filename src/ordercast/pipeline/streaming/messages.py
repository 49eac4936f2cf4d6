"""Rows of a stream as messages: which of them are any, and what each needs before it.

A row that is no message is never lost: it goes on with the outcome `malformed` and a sentence why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.streaming.form import Form

__all__ = ["MOST", "Malformed", "Parsed", "parse"]

MOST = 1 << 62
"""The greatest number: with some room left, so that counting on is safe."""


Flaws = Iterable[tuple[Bools, Callable[[int], str]]]
"""The rows that have it, and what to say of one of them."""


class Parsed(NamedTuple):
    """The rows that are messages, in the order in which they came."""

    rows: pa.Table
    origin: pa.Array
    """Integers or words."""
    number: Ints
    start: Ints
    """Where each row's entries begin, and the end."""
    entry_origin: pa.Array
    entry_number: Ints


class Malformed(NamedTuple):
    rows: pa.Table
    why: list[str]


class _Entries(NamedTuple):
    lengths: Ints
    origin: pa.Array
    number: Ints
    bad: Bools
    """By entry: cannot be read, or null."""


def parse(rows: pa.Table, form: Form) -> tuple[Parsed, list[Malformed]]:
    """What can be used, and what cannot."""
    malformed: list[Malformed] = []
    rows = _without(rows, _scalar_checks(rows, form), malformed)
    entries = _entries(rows, form)
    if form.needs != "nothing":
        good = _without(rows, _entry_checks(rows, form, entries), malformed)
        if good is not rows:
            rows, entries = good, _entries(good, form)
    return _parsed(rows, form, entries), malformed


def _without(rows: pa.Table, flaws: Flaws, malformed: list[Malformed]) -> pa.Table:
    """The rows that have none of the flaws; the others are told by the first that they have."""
    bad = np.zeros(len(rows), np.bool_)
    words: dict[int, str] = {}
    for flaw, say in flaws:
        if not flaw.any():
            continue
        for row in np.flatnonzero(flaw & ~bad).tolist():
            words[row] = say(row)
        bad |= flaw
    if not words:
        return rows
    indices = np.flatnonzero(bad)
    malformed.append(Malformed(rows.take(indices), [words[row] for row in indices.tolist()]))
    return rows.take(np.flatnonzero(~bad))


def _parsed(rows: pa.Table, form: Form, entries: _Entries) -> Parsed:
    origin, number = _origins(rows, form), _ints(rows, form.number)
    start = np.concatenate(([0], np.cumsum(entries.lengths)))
    if form.needs == "array":
        # To leave a row's own entry out would be to move all others: it asks for nothing instead.
        counts = entries.number.copy()
        counts[start[:-1] + _as_ints(origin)] = form.start - 1
        return Parsed(rows, origin, number, start, entries.origin, counts)
    kept = entries.number >= form.start
    if form.needs == "map":
        kept &= ~_own(entries, origin)
    if kept.all():
        return Parsed(rows, origin, number, start, entries.origin, entries.number)
    row = np.repeat(np.arange(len(rows)), entries.lengths)[kept]
    start = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(rows)))))
    entry_origin = entries.origin.filter(pa.array(kept))
    return Parsed(rows, origin, number, start, entry_origin, entries.number[kept])


def _scalar_checks(rows: pa.Table, form: Form) -> Flaws:
    for name in (*form.group, *((form.origin,) if form.origin else ()), form.number):
        yield _nulls(rows, name), lambda _, name=name: f"{name} is null"  # type: ignore[misc]
    number = _ints(rows, form.number)
    yield (
        number < form.start,
        lambda row: f"number {number[row]} is below the first, {form.start}",
    )
    yield number > MOST, lambda row: f"number {number[row]} is greater than {MOST}"
    origin = _origins(rows, form)
    if form.origins is not None:
        yield (
            ~_among(origin, form.origins),
            lambda row: f"origin {origin[row].as_py()} is none of those given",
        )
    if form.stamp is not None:
        yield _nulls(rows, form.stamp), lambda _: f"{form.stamp} is null"
    if form.needs == "array":
        lengths = _lengths(rows, form)
        places = _as_ints(origin)
        yield (
            (places < 0) | (places >= lengths),
            lambda row: f"origin {places[row]} has no place in a stamp of {lengths[row]}",
        )
        if form.origins is not None:
            most = len(form.origins)
            yield (
                lengths > most,
                lambda row: f"the stamp has {lengths[row]} places for {most} origins",
            )


def _entry_checks(rows: pa.Table, form: Form, entries: _Entries) -> Flaws:
    count, ends = len(rows), np.cumsum(entries.lengths)

    def flaw(bad: Bools, words: str) -> tuple[Bools, Callable[[int], str]]:
        entry = np.flatnonzero(bad)[::-1]
        row_of = np.searchsorted(ends, entry, side="right")
        found = np.zeros(count, np.bool_)
        found[row_of] = True
        first = np.empty(count, np.int64)
        first[row_of] = entry  # the last one written stays

        def say(row: int) -> str:
            at = int(first[row])
            return words.format(
                origin=entries.origin[at].as_py(), number=int(entries.number[at]), stamp=form.stamp
            )

        return found, say

    yield flaw(entries.bad, "an entry of {stamp} is null or cannot be read")
    yield flaw(entries.number > MOST, f"{{stamp}} has {{number}}, which is greater than {MOST}")
    if form.needs in ("array", "map"):
        yield flaw(entries.number < min(form.start - 1, 0), "{stamp} has {number} for {origin}")
    else:
        yield flaw(entries.number < min(form.start, 1), "it depends on {origin}:{number}")
        own = _own(entries, _origins(rows, form))
        later = entries.number >= np.repeat(_ints(rows, form.number), entries.lengths)
        yield flaw(own & later, "it depends on {origin}:{number}, itself or its own future")
    if form.origins is not None and form.needs != "array":
        known = _among(entries.origin, form.origins)
        yield flaw(~known & ~entries.bad, "{stamp} names {origin}, which is none of those given")


def _own(entries: _Entries, origin: pa.Array) -> Bools:
    """The entries about a message's own origin."""
    row_of = np.repeat(np.arange(len(origin)), entries.lengths)
    if pa.types.is_integer(origin.type):
        own: Bools = _as_ints(entries.origin) == _as_ints(origin)[row_of]
        return own
    same = pc.equal(entries.origin, origin.take(pa.array(row_of)))
    return np.asarray(pc.fill_null(same, False))


def _entries(rows: pa.Table, form: Form) -> _Entries:
    nobody = pa.array([], pa.string() if form.named else pa.int64())
    if form.needs == "nothing" or not len(rows):
        none = np.zeros(0, np.int64)
        return _Entries(np.zeros(len(rows), np.int64), nobody, none, none.astype(np.bool_))
    column = _combined(rows.column(form.stamp))
    offsets = np.asarray(column.offsets).astype(np.int64)
    lengths = np.diff(offsets)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    if form.needs == "array":
        origin = pa.array(np.arange(count) - np.repeat(offsets[:-1] - first, lengths))
        number, bad = _numbers(column.values.slice(first, count))
        return _Entries(lengths, origin, number, bad)
    if form.needs == "map":
        origin, number = column.keys.slice(first, count), column.items.slice(first, count)
    elif form.needs == "structs":
        structs = column.values.slice(first, count)
        origin, number = structs.flatten()
    else:
        origin, number = _words(column.values.slice(first, count), named=form.named)
    numbers, bad = _numbers(number)
    bad |= np.asarray(origin.is_null())
    return _Entries(lengths, origin.cast(nobody.type), numbers, bad)


def _words(words: pa.Array, *, named: bool) -> tuple[pa.Array, pa.Array]:
    """`a:3` as origin and number; both null if it cannot be read. An origin may have colons."""
    origin = r"(?P<origin>.+)" if named else r"(?P<origin>[0-9]{1,18})"
    parts = pc.extract_regex(words, pattern=f"^{origin}:(?P<number>[0-9]{{1,18}})$")
    # A struct that is null as a whole has parts that are not.
    names, numbers = parts.flatten()
    return names, numbers.cast(pa.int64())


def _numbers(column: pa.Array) -> tuple[Ints, Bools]:
    """Without its nulls, which are told beside."""
    return _as_ints(column), np.asarray(column.is_null())


def _origins(rows: pa.Table, form: Form) -> pa.Array:
    if form.origin is None:
        return pa.array(np.zeros(len(rows), np.int64))
    return _combined(rows.column(form.origin)).cast(pa.string() if form.named else pa.int64())


def _lengths(rows: pa.Table, form: Form) -> Ints:
    lengths = pc.list_value_length(_combined(rows.column(form.stamp)))
    return _as_ints(lengths)


def _among(column: pa.Array, known: tuple[Any, ...]) -> Bools:
    return np.asarray(pc.is_in(column, value_set=pa.array(known, column.type)))


def _nulls(rows: pa.Table, name: str) -> Bools:
    return np.asarray(_combined(rows.column(name)).is_null())


def _ints(rows: pa.Table, name: str) -> Ints:
    return _as_ints(_combined(rows.column(name)))


def _as_ints(column: pa.Array) -> Ints:
    if column.null_count:
        column = pc.fill_null(column, 0)
    return np.asarray(column).astype(np.int64, copy=False)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
