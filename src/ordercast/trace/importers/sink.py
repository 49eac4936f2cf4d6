"""Where imported events go: a trace directory that appears when it is whole, and not before."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ordercast.trace.becoming import Becoming
from ordercast.trace.directory import MANIFEST, Format
from ordercast.trace.event import Event
from ordercast.trace.jsonl import encode_event
from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter, arrow_schema
from ordercast.trace.writing import naming

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TraceSink", "best_format", "in_batches", "to_columns", "write_log"]

ROWS_AT_ONCE = 1 << 14
T = TypeVar("T")


def best_format() -> Format:
    """Parquet, if this machine can write it."""
    return "jsonl" if importlib.util.find_spec("pyarrow") is None else "parquet"


class TraceSink:
    def __init__(self, directory: Path, format: Format) -> None:
        self._directory = directory
        self._format = format
        self._becoming = Becoming(directory)
        self.scratch = self._becoming.scratch

    def write(self, events: Iterable[Event]) -> int:
        """All of them, sorted by run, process and position; how many there were."""
        with naming(self._directory):
            return self._write(events)

    def _write(self, events: Iterable[Event]) -> int:
        if self._format == "jsonl":
            count = 0
            with (self.scratch / "events.jsonl").open("wb") as file:
                for event in events:
                    file.write(encode_event(event))
                    count += 1
            return count
        (self.scratch / "events").mkdir()
        return write_log(events, self.scratch / "events" / "part-0.parquet")

    def write_ids(self, ids: Iterable[tuple[str, int, int, str]]) -> None:
        """The side file that leads from a message back to the log it came from."""
        if self._format == "jsonl":
            with (self.scratch / "messages.jsonl").open("wb") as file:
                for row in ids:
                    file.write(msgspec.json.encode(dict(zip(_IDS, row, strict=True))) + b"\n")
            return
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema(
            zip(_IDS, (pa.string(), pa.int32(), pa.int64(), pa.string()), strict=True)
        )
        with pq.ParquetWriter(self.scratch / "messages.parquet", schema) as writer:
            for rows in in_batches(ids):
                columns = [list(column) for column in zip(*rows, strict=True)]
                writer.write_table(pa.table(columns, schema=schema))

    def finish(self, manifests: Iterable[Manifest]) -> None:
        lines = b"".join(manifest.to_json() + b"\n" for manifest in manifests)
        with naming(self._directory):
            (self.scratch / MANIFEST).write_bytes(lines)
        for left in self.scratch.glob("*.sqlite*"):
            left.unlink()
        self._becoming.appear(self.scratch)

    def abandon(self) -> None:
        self._becoming.abandon()


_IDS = ("run", "origin", "number", "id")


def write_log(events: Iterable[Event], path: Path) -> int:
    """One Parquet file, in the layout that is cheapest to judge."""
    count = 0
    with LogWriter(path) as writer:
        for rows in in_batches(events):
            writer.write(to_columns(rows))
            count += len(rows)
    return count


def to_columns(events: list[Event]) -> pa.Table:
    import pyarrow as pa

    schema = arrow_schema()
    columns = zip(*map(msgspec.structs.astuple, events), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def in_batches(rows: Iterable[T]) -> Iterator[list[T]]:
    """The same rows, some thousand at a time."""
    source = iter(rows)
    while batch := list(islice(source, ROWS_AT_ONCE)):
        yield batch
