"""Events as Parquet: for machines. Needs pyarrow, which comes with the `spark` extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.errors import SetupError, TraceError
from ordercast.trace.event import REQUIRED, Event, flaw, misfit
from ordercast.trace.outline import OUTLINE, Outlined, encode_outline, outline

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "EVERYONE",
    "LogWriter",
    "arrow_schema",
    "read_parquet",
    "reading",
    "require_pyarrow",
    "statistics_of",
    "to_table",
    "unreadable",
    "write_parquet",
]

ROW_GROUP_ROWS = 1 << 17
EVERYONE = b"ordercast.everyone"
"""What the footer says if every message in the file is for everyone. Its statistics cannot: in
them, messages for nobody look the same."""
_COUNTERS = ("position", "number", "time_us")


def arrow_schema() -> pa.Schema:
    pa = _pyarrow()
    return pa.schema(
        [
            pa.field("run", pa.string(), nullable=False),
            pa.field("process", pa.int32(), nullable=False),
            pa.field("position", pa.int64(), nullable=False),
            pa.field("kind", pa.string(), nullable=False),
            pa.field("origin", pa.int32()),
            pa.field("number", pa.int64()),
            pa.field("destinations", pa.list_(pa.int32())),
            pa.field("time_us", pa.int64()),
            pa.field("bytes", pa.int32()),
            pa.field("control_bytes", pa.int32()),
        ]
    )


def to_table(events: Iterable[Event]) -> pa.Table:
    rows = [msgspec.structs.asdict(event) for event in events]
    table: pa.Table = _pyarrow().Table.from_pylist(rows, schema=arrow_schema())
    return table


class LogWriter:
    """Writes rows that come sorted by run, process and position, as they are cheapest to judge:
    row groups that a task can take a few of, counters as differences, words as dictionaries, and
    what is in them in the footer."""

    def __init__(self, path: Path, *, group_rows: int = ROW_GROUP_ROWS) -> None:
        require_pyarrow()
        import pyarrow.parquet as pq

        self._file = pq.ParquetWriter(
            path,
            arrow_schema(),
            compression="lz4",
            use_dictionary=["run", "process", "kind", "origin", "bytes", "control_bytes"],
            column_encoding=dict.fromkeys(_COUNTERS, "DELTA_BINARY_PACKED"),
        )
        self._group_rows = group_rows
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._everyone = True
        self._outline: list[list[Outlined] | None] = []

    def write(self, table: pa.Table) -> None:
        """Adds rows; they go to disk once a row group is full."""
        self._waiting.append(table)
        self._rows += len(table)
        self._everyone &= table.column("destinations").null_count == len(table)
        if self._rows >= self._group_rows:
            self._write(self._rows - self._rows % self._group_rows)

    def close(self) -> None:
        self._write(self._rows)
        if self._everyone:
            self._file.add_key_value_metadata({EVERYONE: b"true"})
        if any(self._outline):
            self._file.add_key_value_metadata({OUTLINE: encode_outline(self._outline)})
        self._file.close()

    def _write(self, rows: int) -> None:
        if not rows:
            return
        table = _pyarrow().concat_tables(self._waiting)
        self._file.write_table(table.slice(0, rows), row_group_size=self._group_rows)
        self._outline += [
            outline(table.slice(begin, min(self._group_rows, rows - begin)))
            for begin in range(0, rows, self._group_rows)
        ]
        self._waiting = [table.slice(rows)]
        self._rows -= rows

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_parquet(events: Iterable[Event], path: Path) -> None:
    """One file, sorted so that each process's log lies together, in its own order."""
    order = [("run", "ascending"), ("process", "ascending"), ("position", "ascending")]
    with LogWriter(path) as writer:
        writer.write(to_table(events).sort_by(order))


def read_parquet(path: Path) -> Iterator[Event]:
    require_pyarrow()
    import pyarrow.parquet as pq

    with reading(path), pq.ParquetFile(path) as file:
        known = set(Event.__struct_fields__)
        missing = [name for name in REQUIRED if name not in file.schema_arrow.names]
        if missing:
            raise TraceError(f"{path}: the column {missing[0]!r} is missing")
        columns = [name for name in file.schema_arrow.names if name in known]
        row = 0
        for batch in file.iter_batches(columns=columns):
            for values in batch.to_pylist():
                row += 1
                yield _event(values, where=f"{path}, row {row}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever Arrow raises for a file that is damaged, in one sentence."""
    try:
        yield
    except (_pyarrow().ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None


def statistics_of(footer: Any, group: int, column: int) -> Any:
    """What a row group's footer says of a column, or None. For a footer that gives the column
    another type than the file has, Arrow would raise nothing, but end the process; and now and then
    for other damage, so it is asked of no column in vain."""
    about = footer.row_group(group).column(column)
    found, named = about.physical_type, footer.schema.column(column).physical_type
    if found != named:
        raise _pyarrow().ArrowInvalid(f"its footer gives a column two types: {named} and {found}")
    return about.statistics


def unreadable(path: Path, error: Exception) -> TraceError:
    """In one sentence, however many Arrow says."""
    words = " ".join(str(error).split()).partition(". ")[0].removesuffix(".")
    return TraceError(f"{path}: not a readable Parquet file: {words}")


def _event(values: dict[str, Any], *, where: str) -> Event:
    try:
        event = msgspec.convert(values, Event)
    except msgspec.ValidationError as error:
        raise TraceError(f"{where}: not an event: {misfit(error)}") from None
    if (reason := flaw(event)) is not None:
        raise TraceError(f"{where}: {reason}")
    return event


def require_pyarrow() -> None:
    """Raises a `SetupError` that says what to install."""
    _pyarrow()


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise SetupError(
            "Parquet traces need pyarrow: pip install 'ordercast[judge]', or use JSON lines"
        ) from None
    return pyarrow
