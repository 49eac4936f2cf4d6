"""A trace's rows, from disk into memory, a piece at a time: what a Spark task reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.pipeline.rules import COLUMNS, flaws, outside, typed
from ordercast.pipeline.shipping import local_path
from ordercast.trace.event import Event
from ordercast.trace.jsonl import UNREADABLE, decode_event
from ordercast.trace.parquet import arrow_schema

__all__ = ["FLAWS", "MEASURED", "Loaded", "Piece", "load"]

FLAWS = pa.schema({"file": pa.string(), "row": pa.int64(), "flaw": pa.string(), "run": pa.string()})
"""A row that cannot be used: where it is (a null row is the whole file) and what is wrong with it.
The run is null if it could not be read."""

MEASURED = ("time_us", "bytes", "control_bytes")
"""What of a trace costs are measured by, beside `COLUMNS`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A file of JSON lines, or some row groups of a Parquet file."""

    file: str
    """As the user knows it."""
    token: str
    """What a task opens (`shipping.local_path`)."""
    groups: tuple[int, ...] | None = None
    """None: JSON lines."""
    first_row: int = 1
    rows: int = 0
    """As far as it is known before reading."""


class Loaded(NamedTuple):
    events: pa.Table
    """The sound rows: `rules.typed`, and `MEASURED` if that was asked for."""
    flaws: pa.Table
    """The others: `FLAWS`."""


def load(pieces: Iterable[Piece], *, measured: bool = False) -> Loaded:
    extra = MEASURED if measured else ()
    events, broken = [], []
    for piece in pieces:
        one = _read_lines(piece, extra) if piece.groups is None else _read_groups(piece, extra)
        events.append(one.events)
        broken.append(one.flaws)
    if not events:
        return Loaded(_typed(arrow_schema().empty_table(), extra), FLAWS.empty_table())
    return Loaded(pa.concat_tables(events).unify_dictionaries(), pa.concat_tables(broken))


def _read_groups(piece: Piece, extra: Sequence[str]) -> Loaded:
    assert piece.groups is not None
    try:
        with pq.ParquetFile(local_path(piece.token), read_dictionary=["run", "kind"]) as file:
            names = [name for name in (*COLUMNS, *extra) if name in file.schema_arrow.names]
            table = file.read_row_groups(list(piece.groups), columns=names, use_threads=False)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        # The footer was sound when it was planned, so what comes after says little.
        nothing = _typed(arrow_schema().empty_table(), extra)
        return Loaded(
            nothing, _flaw_table([(piece.file, None, "not a readable Parquet file", None)])
        )
    bad = flaws(table)
    if not bad:
        return Loaded(_typed(table, extra), FLAWS.empty_table())
    runs = table.column("run")
    told = [(piece.file, piece.first_row + row, words, runs[row].as_py()) for row, words in bad]
    keep = pa.array(sorted(set(range(len(table))).difference(row for row, _ in bad)), pa.int64())
    return Loaded(_typed(table.take(keep), extra), _flaw_table(told))


def _read_lines(piece: Piece, extra: Sequence[str]) -> Loaded:
    events: list[Event] = []
    told: list[tuple[str, int | None, str, str | None]] = []
    try:
        with open(local_path(piece.token), "rb") as lines:
            for row, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    events.append(decode_event(line, where=""))
                except TraceError as error:
                    words = str(error).removeprefix(": ")
                    told.append((piece.file, row, words, _run_of(line)))
    except FileNotFoundError:
        raise
    except OSError as error:
        nothing = _typed(arrow_schema().empty_table(), extra)
        return Loaded(
            nothing, _flaw_table([(piece.file, None, f"cannot be read: {error.strerror}", None)])
        )
    columns = {
        name: pa.array([getattr(event, name) for event in events], arrow_schema().field(name).type)
        for name in (*COLUMNS, *extra)
    }
    return Loaded(_typed(pa.table(columns), extra), _flaw_table(told))


class _Named(msgspec.Struct):
    run: str


def _run_of(line: bytes) -> str | None:
    """Whose row it is, if that much of a broken line can be read."""
    try:
        return msgspec.json.decode(line, type=_Named).run
    except UNREADABLE:
        return None


def _typed(table: pa.Table, extra: Sequence[str]) -> pa.Table:
    """`rules.typed`, with more columns; what does not fit one of those is null."""
    found = typed(table)
    for name in extra:
        kind = arrow_schema().field(name).type
        column = pa.nulls(len(table), kind)
        if name in table.column_names and not pa.types.is_null(table.column(name).type):
            values = table.column(name)
            most = 2 ** (kind.bit_width - 1) - 1
            fits = pa.array(~outside(values, 0, most))
            column = pc.if_else(fits, values, None).cast(kind)
        found = found.append_column(name, column)
    return found


def _flaw_table(told: Sequence[tuple[str, int | None, str, str | None]]) -> pa.Table:
    rows = [dict(zip(FLAWS.names, one, strict=True)) for one in told]
    return pa.Table.from_pylist(rows, FLAWS)
