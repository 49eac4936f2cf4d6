"""What a directory of result tables says of itself: `results.json`, and which files count."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ordercast.errors import TraceError
from ordercast.pipeline.options import Options
from ordercast.trace.jsonl import UNREADABLE
from ordercast.trace.writing import naming

__all__ = [
    "Part",
    "Record",
    "Terms",
    "files_of",
    "hidden",
    "part_file",
    "read_record",
    "remove_unfinished",
    "write_record",
]

_RECORD = "results.json"


class Part(msgspec.Struct, frozen=True):
    """What one verify has added."""

    number: int
    runs: int
    events: int
    tables: tuple[str, ...]
    files: dict[str, tuple[int, int]]
    """Where the events were, and each file's size and time of change (ns), or a number for what
    was in it."""


class Terms(msgspec.Struct, frozen=True):
    """What must be the same for all parts, or the tables would not belong together."""

    properties: tuple[str, ...]
    demanded: tuple[str, ...] | None
    quiesced: bool
    skip: bool

    @classmethod
    def of(cls, options: Options) -> Terms:
        demanded = None if options.demanded is None else tuple(options.demanded)
        return cls(tuple(options.properties), demanded, options.quiesced, options.skip)


class Record(msgspec.Struct, frozen=True):
    terms: Terms
    parts: tuple[Part, ...] = ()
    torn: bool = False
    """`Options.torn`, for all of them."""


def read_record(path: Path) -> Record | None:
    """What has been judged into a directory; None if nothing has."""
    file = path / _RECORD
    try:
        return msgspec.json.decode(file.read_bytes(), type=Record)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UNREADABLE as error:
        raise TraceError(f"{file}: not what verify --output has written: {error}") from None


def write_record(path: Path, record: Record) -> None:
    """In one go: whoever is killed leaves the old one."""
    file = path / _RECORD
    with naming(file), hidden(file).open("wb") as bare:
        bare.write(msgspec.json.format(msgspec.json.encode(record)))
        bare.flush()
        os.fsync(bare.fileno())
    os.replace(hidden(file), file)


def remove_unfinished(path: Path) -> None:
    """What was to become the record."""
    hidden(path / _RECORD).unlink(missing_ok=True)


def files_of(path: Path, record: Record, name: str) -> list[Path]:
    return [part_file(path, name, part.number) for part in record.parts if name in part.tables]


def part_file(path: Path, name: str, number: int) -> Path:
    return path / name / f"part-{number:04}.parquet"


def hidden(file: Path) -> Path:
    """What it is called until it is finished; readers of Parquet pass over such names."""
    return file.with_name(f".{file.name}")
