"""A trace's rows, from disk into memory, a piece at a time: what a Spark task reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.pipeline.rules import COLUMNS, flaws, typed
from ordercast.pipeline.shipping import local_path
from ordercast.trace.event import Event
from ordercast.trace.jsonl import decode_event
from ordercast.trace.parquet import arrow_schema

__all__ = ["FLAWS", "Loaded", "Piece", "load"]

FLAWS = pa.schema({"file": pa.string(), "row": pa.int64(), "flaw": pa.string(), "run": pa.string()})
"""A row that cannot be used: where it is (a null row is the whole file) and what is wrong with it.
The run is null if it could not be read."""


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
    """The sound rows: `rules.typed`."""
    flaws: pa.Table
    """The others: `FLAWS`."""


def load(pieces: Iterable[Piece]) -> Loaded:
    events, broken = [], []
    for piece in pieces:
        one = _read_lines(piece) if piece.groups is None else _read_groups(piece)
        events.append(one.events)
        broken.append(one.flaws)
    if not events:
        return Loaded(typed(arrow_schema().empty_table()), FLAWS.empty_table())
    return Loaded(pa.concat_tables(events).unify_dictionaries(), pa.concat_tables(broken))


def _read_groups(piece: Piece) -> Loaded:
    assert piece.groups is not None
    try:
        with pq.ParquetFile(local_path(piece.token), read_dictionary=["run", "kind"]) as file:
            names = [name for name in COLUMNS if name in file.schema_arrow.names]
            table = file.read_row_groups(list(piece.groups), columns=names, use_threads=False)
    except (pa.ArrowException, OSError):
        # The footer was sound when it was planned, so what comes after says little.
        nothing = typed(arrow_schema().empty_table())
        return Loaded(
            nothing, _flaw_table([(piece.file, None, "not a readable Parquet file", None)])
        )
    bad = flaws(table)
    if not bad:
        return Loaded(typed(table), FLAWS.empty_table())
    runs = table.column("run")
    told = [(piece.file, piece.first_row + row, words, runs[row].as_py()) for row, words in bad]
    keep = pa.array(sorted(set(range(len(table))).difference(row for row, _ in bad)), pa.int64())
    return Loaded(typed(table.take(keep)), _flaw_table(told))


def _read_lines(piece: Piece) -> Loaded:
    events: list[Event] = []
    told: list[tuple[str, int | None, str, str | None]] = []
    with open(local_path(piece.token), "rb") as lines:
        for row, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                events.append(decode_event(line, where=""))
            except TraceError as error:
                told.append((piece.file, row, str(error).removeprefix(": "), None))
    columns = {
        name: pa.array([getattr(event, name) for event in events], arrow_schema().field(name).type)
        for name in COLUMNS
    }
    return Loaded(typed(pa.table(columns)), _flaw_table(told))


def _flaw_table(told: Sequence[tuple[str, int | None, str, str | None]]) -> pa.Table:
    rows = [dict(zip(FLAWS.names, one, strict=True)) for one in told]
    return pa.Table.from_pylist(rows, FLAWS)
