"""What messages were called in the log that a trace was imported from.

A trace names messages by origin and number, such as 0:3. Whoever looks for one in the log needs its
own id: the importer keeps up to a thousand in the manifest, and more of them beside the events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ordercast.errors import SetupError
from ordercast.readable import readable
from ordercast.trace.manifest import Manifest
from ordercast.trace.runs import Id, parse_id

__all__ = ["message_called", "own_id", "own_ids", "shown"]

SHOWN_MAX = 100


class _Row(msgspec.Struct):
    run: str
    origin: int
    number: int
    id: str


def own_ids(trace: Path, manifest: Manifest, messages: Collection[str]) -> dict[str, str]:
    """By message, such as 0:3, its id in the log of this run; without those that have none."""
    beside = _files(trace) if messages else []
    if not beside:
        found = {name: own_id(manifest, name) for name in messages}
        return {name: id for name, id in found.items() if id is not None}
    wanted = {parse_id(name) for name in messages}
    origins, numbers = ({one[place] for one in wanted} for place in (0, 1))
    rows = _rows(beside, manifest.run, origin=origins, number=numbers)
    ids = {(row.origin, row.number): row.id for row in rows}
    return {name: ids[key] for name in messages if (key := parse_id(name)) in ids}


def own_id(manifest: Manifest, message: str) -> str | None:
    """As far as the manifest has it."""
    known = manifest.extra.get("messages")
    found = known.get(message) if isinstance(known, dict) else None
    return found if isinstance(found, str) else None


def message_called(trace: Path, manifest: Manifest, id: str) -> Id | None:
    """The message that had this id in the log."""
    beside = _files(trace)
    if beside:
        rows = _rows(beside, manifest.run, id={id})
        return next(((row.origin, row.number) for row in rows), None)
    known = manifest.extra.get("messages")
    found = known.items() if isinstance(known, dict) else ()
    return next((parse_id(message) for message, own in found if own == id), None)


def shown(id: str) -> str:
    """For people: on one line, and not for ever."""
    words = readable(id)
    return words if len(words) <= SHOWN_MAX else words[: SHOWN_MAX - 1] + "…"


def _files(trace: Path) -> list[Path]:
    names = ("messages.jsonl", "messages.parquet", "messages/*.jsonl", "messages/*.parquet")
    return [file for name in names for file in sorted(trace.glob(name)) if file.is_file()]


def _rows(files: list[Path], run: str, **wanted: set[Any]) -> Iterator[_Row]:
    """Those of a run in which each of these columns has one of these values."""
    for file in files:
        for row in _lines(file) if file.suffix == ".jsonl" else _parquet(file, run, wanted):
            if row.run == run and all(getattr(row, name) in some for name, some in wanted.items()):
                yield row


def _lines(file: Path) -> Iterator[_Row]:
    decode = msgspec.json.Decoder(_Row).decode
    with file.open("rb") as lines:
        yield from map(decode, lines)


def _parquet(file: Path, run: str, wanted: dict[str, set[Any]]) -> Iterator[_Row]:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise SetupError(f"{file}: Parquet needs pyarrow: pip install 'ordercast[judge]'") from None
    filters = [("run", "==", run), *((name, "in", some) for name, some in wanted.items())]
    rows = pq.read_table(file, filters=filters, columns=list(_Row.__struct_fields__)).to_pylist()
    yield from msgspec.convert(rows, list[_Row])
