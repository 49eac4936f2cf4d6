"""Any table, one row per event: CSV, JSON lines or Parquet, and a map of its columns.

    --map process=host,position=offset,kind=type,origin=from,number=seq
    --kinds produce=send,consume=deliver

Without a position, a host's order is that of its clock (ties by line); without a clock either, that
of the lines. A message is known by `message`, or by `origin` and `number`. A field may be made of
several columns: `message=topic+partition+offset`; and a column may lie deeper: `kind=event.type`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from ordercast.errors import UsageError
from ordercast.trace.importers.base import Importer, Job, Log, Options, Record, Where
from ordercast.trace.importers.columns import first_columns, rows_of
from ordercast.trace.importers.instants import Instant, instant
from ordercast.trace.importers.kinds import KINDS, kinds_of
from ordercast.trace.importers.store import gathered
from ordercast.trace.importers.values import as_text, not_a_value

__all__ = ["FIELDS", "PRESETS", "TABLE", "Mapping", "records_of"]

FIELDS = (
    *("run", "process", "position", "kind", "message", "origin", "number", "destinations"),
    *("time", "bytes"),
)
PRESETS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "kafka": (
        {
            "process": "client",
            "kind": "type",
            "message": "topic+partition+offset",
            "time": "timestamp",
        },
        {"produce": "send", "consume": "deliver"},
        "ms",
    )
}


class Mapping:
    """Which columns mean what, by the user's word, the preset's, or the columns' own names."""

    def __init__(self, options: Options, columns: list[str], file: Path) -> None:
        preset = PRESETS.get(options.preset or "", ({}, {}, "us"))
        if options.preset is not None and options.preset not in PRESETS:
            raise UsageError(f"there is no preset {options.preset!r}: choose {', '.join(PRESETS)}")
        wanted = preset[0] | options.map
        unknown = set(wanted) - set(FIELDS)
        if unknown:
            raise UsageError(
                f"--map {min(unknown)}=…: there is no such field: choose from {', '.join(FIELDS)}"
            )
        own = {name: name for name in (*FIELDS, "time_us") if name in columns}
        if "time_us" in own:
            own.setdefault("time", own.pop("time_us"))
        self.fields = {name: text.split("+") for name, text in (own | wanted).items() if text}
        for name, parts in self.fields.items():
            missing = [part for part in parts if part not in columns]
            if missing:
                there = ", ".join(each if each.isprintable() else repr(each) for each in columns)
                raise UsageError(
                    f"{file}: there is no column {missing[0]!r} for {name}: it has {there:.300}"
                )
            if twice := [part for part in parts if columns.count(part) > 1]:
                raise UsageError(
                    f"{file}: two columns are called {twice[0]!r}, so which of them is the {name} "
                    "cannot be told: rename one"
                )
        for name in ("process", "kind"):
            if name not in self.fields:
                raise UsageError(f"{file}: which column is the {name}? say it with --map {name}=…")
        if "message" not in self.fields and not {"origin", "number"} <= self.fields.keys():
            raise UsageError(
                f"{file}: which columns are the message? say it with --map message=… "
                "or --map origin=…,number=…"
            )
        self.kinds = kinds_of(dict(zip(KINDS, KINDS, strict=True)) | preset[1] | options.kinds)
        self.unit = options.time_unit or preset[2]

    def text(self, row: dict[str, Any], field: str) -> str | None:
        """The field as text; None if it is empty."""
        columns = self.fields.get(field)
        if columns is None:
            return None
        parts = [as_text(_value(row, column)) for column in columns]
        return None if "" in parts else "/".join(parts)

    def number(self, row: dict[str, Any], field: str) -> int | None:
        text = self.text(row, field)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise UnusableRowError(f"{field} is {text[:40]!r}, not a whole number") from None

    def time(self, row: dict[str, Any]) -> Instant | None:
        columns = self.fields.get("time", ())
        value = _value(row, columns[0]) if columns else None
        text = as_text(value)
        if not text:
            return None
        try:
            return instant(value, self.unit)
        except ValueError:
            raise UnusableRowError(f"time is {text[:40]!r}, neither a number nor a date") from None

    def destinations(self, row: dict[str, Any]) -> tuple[str, ...] | None:
        """A list, or names with anything but letters, digits, dots, dashes and the like between."""
        if "destinations" not in self.fields:
            return None
        column = self.fields["destinations"][0]
        value = row.get(column)
        if not isinstance(value, list):
            text = as_text(_value(row, column))
            return tuple(re.findall(r"[\w.:@/-]+", text)) if text else None
        names = tuple(as_text(_checked(each, f"a value of {column!r}")) for each in value)
        if "" in names:
            raise UnusableRowError(f"a value of {column!r} is empty, and a name is expected")
        return names


class UnusableRowError(Exception):
    """Why a row cannot be used."""


def read(job: Job) -> Generator[Log, None, None]:
    yield from gathered(job, (record for file in job.files for record in records_of(job, file)))


def records_of(job: Job, file: Path) -> Iterator[Record]:
    """What one file says."""
    mapping: Mapping | None = None
    for number, columns, row in rows_of(job, file):
        if mapping is None:
            columns = columns if job.portion is None else first_columns(job, file)
            mapping = Mapping(job.options, columns, file)
            _tell_order(job, mapping)
        where = Where(str(file), number)
        try:
            record = _record(job, mapping, where, row)
        except UnusableRowError as error:
            job.report.unusable(where, str(error))
            continue
        if record is not None:
            yield record


def _record(job: Job, mapping: Mapping, where: Where, row: dict[str, Any]) -> Record | None:
    process, word = mapping.text(row, "process"), mapping.text(row, "kind")
    if process is None or word is None:
        raise UnusableRowError("it has no process, or no kind")
    kind: Any = mapping.kinds.get(word)
    if kind is None:
        raise UnusableRowError(
            f"what is {word[:40]!r}? say it with --kinds {word[:40]}=send, or =deliver, "
            f"or {word[:40]}= if it is none of ours"
        )
    if not kind:
        return None
    message, origin, number, place = None, None, None, mapping.number(row, "position")
    if kind in ("send", "receive", "deliver"):
        message, origin, number = _message(mapping, row, kind, process)
    at, size = mapping.time(row), mapping.number(row, "bytes")
    time_us, finer = (None, 0) if at is None else at
    if "position" in mapping.fields:
        finer = 0
    else:
        place = time_us
    if place is None and {"position", "time"} & mapping.fields.keys():
        raise UnusableRowError("it has no position and no time, and others have")
    run = mapping.text(row, "run") or job.run
    destinations = mapping.destinations(row) if kind == "send" else None
    return Record(
        *(run, process, kind, where, message, place, origin, number, destinations),
        *(time_us, size, finer),
    )


def _message(
    mapping: Mapping, row: dict[str, Any], kind: str, process: str
) -> tuple[str, str | None, int | None]:
    """Its id, and origin and number if the row has them."""
    origin = mapping.text(row, "origin")
    if kind == "send":
        if origin not in (None, process):
            raise UnusableRowError(f"{process} cannot send a message whose origin is {origin}")
        origin = process
    name = mapping.text(row, "message")
    if name is not None:
        return name, origin, None
    number = mapping.number(row, "number")
    if number is None or origin is None:
        raise UnusableRowError(f"which message? a {kind} needs an id, or origin and number")
    if not 1 <= number < 2**63:
        raise UnusableRowError(f"number is {number}, and numbers count from 1: map it to message")
    return f"{origin}:{number}", origin, number


def _value(row: dict[str, Any], column: str) -> Any:
    value = row.get(column)
    return value if isinstance(value, str) else _checked(value, f"the column {column!r}")


def _checked(value: Any, what: str) -> Any:
    """The same, if it is text, a number or a date."""
    if (found := not_a_value(value)) is not None:
        raise UnusableRowError(f"{what} is {found}, and text or a number is expected")
    return value


def _tell_order(job: Job, mapping: Mapping) -> None:
    if "position" in mapping.fields:
        job.report.by_position = True
    elif "time" in mapping.fields:
        job.report.clock = "wall"
        job.report.note("each process's order is that of its own clock, ties by line")
    else:
        job.report.note("each process's order is that of the lines")


def looks(file: Path, head: list[str]) -> bool:
    if file.suffix in (".csv", ".tsv", ".parquet"):
        return True
    return bool(head) and head[0].startswith("{") and '"process"' in head[0] and '"kind"' in head[0]


TABLE = Importer(
    "table",
    "CSV, JSON lines or Parquet, one row per event",
    ("map", "kinds", "preset", "time_unit", "to", "crashed"),
    looks,
    read,
    records_of,
)
