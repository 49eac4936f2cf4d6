"""`spark.readStream.format("ordercast")`: the trace that a running group writes, as a stream.

An offset says for each file how far it was read, always to the end of a whole record, and which
manifests were told; so nothing is lost or repeated when a node, or the query, is killed and comes
back. A manifest that says that its run came to rest is told once every file was read to its last
byte: then nothing of that run can follow.

options:
    path                  a directory that nodes write to, or an events file
    max_bytes_per_batch   of all files together, about (default: 16 MiB)
    manifests             `true`: one more column, `manifest`; where it is not null, the row is no
                          event, but a line of the run's manifest (`streaming.watch` knows)
    ended                 `true`: nothing more will be written, so a last line without an end is
                          read, and half a Parquet file refused; else both are waited for
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    SupportsTriggerAvailableNow,
)

from ordercast.errors import UsageError
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.streaming.source_files import Place, Stretch, followed, read_stretch
from ordercast.pipeline.streaming.source_reach import Directory, Reach
from ordercast.trace.parquet import arrow_schema

__all__ = ["MAX_BYTES", "UNLIMITED", "OrdercastSource", "register"]

MAX_BYTES = 16 << 20
UNLIMITED = 1 << 62


def register(spark: SparkSession) -> None:
    """Make the format `ordercast` known in this session."""
    spark.dataSource.register(OrdercastSource)


class OrdercastSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ordercast"

    def schema(self) -> str:
        return spark_schema(_schema(self._manifests))

    def reader(self, schema: Any) -> TraceReader:
        return TraceReader(self._path, manifests=self._manifests, ended=self._flag("ended"))

    def streamReader(self, schema: Any) -> TraceStream:  # noqa: N802 - Spark's name
        most = str(self.options.get("max_bytes_per_batch", MAX_BYTES))
        if not most.isdigit() or int(most) < 1:
            raise UsageError(f"max_bytes_per_batch {most!r}: choose a number of bytes")
        return TraceStream(
            self._path,
            manifests=self._manifests,
            ended=self._flag("ended"),
            most_bytes=int(most),
        )

    @property
    def _path(self) -> Path:
        path = self.options.get("path")
        if not path:
            raise UsageError("the format ordercast needs a directory: load(DIR)")
        return Path(path.removeprefix("file:"))

    @property
    def _manifests(self) -> bool:
        return self._flag("manifests")

    def _flag(self, name: str) -> bool:
        return str(self.options.get(name, "false")).lower() == "true"


class _Part(InputPartition):
    """A stretch of a file, or manifests."""

    def __init__(self, stretch: Stretch | None, manifests: Sequence[tuple[str, str]] = ()) -> None:
        self.stretch = stretch
        self.manifests = tuple(manifests)


class _Reading:
    """What both readers share."""

    def __init__(self, path: Path, *, manifests: bool, ended: bool) -> None:
        followed(path)  # or there is nothing to read
        self._directory = Directory(path, ended=ended)
        self._told = manifests

    def _parts(self, start: Reach, end: Reach) -> list[_Part]:
        parts = [_Part(stretch) for stretch in self._directory.stretches(start, end)]
        if self._told and (lines := self._directory.manifests(start, end)):
            parts.append(_Part(None, lines))
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        schema = _schema(self._told)
        if partition.stretch is None:
            rows = [{"run": run, "manifest": line} for run, line in partition.manifests]
            yield from pa.Table.from_pylist(rows, schema).to_batches()
            return
        for table in read_stretch(partition.stretch):
            if self._told:
                table = table.append_column("manifest", pa.nulls(len(table), pa.string()))
            yield from table.cast(schema).to_batches()


class TraceReader(_Reading, DataSourceReader):
    """All there is now."""

    def partitions(self) -> list[_Part]:
        nothing = Reach({}, {})
        return self._parts(nothing, self._directory.reach(nothing, UNLIMITED))


class TraceStream(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, path: Path, *, manifests: bool, ended: bool, most_bytes: int) -> None:
        super().__init__(path, manifests=manifests, ended=ended)
        self._most_bytes = most_bytes
        self._last: Reach | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - as are the others, Spark's names
        return Reach({}, {}).offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxBytes(self._most_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._directory.reach(Reach({}, {}), UNLIMITED)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        before = Reach.of(start)
        most = UNLIMITED if isinstance(limit, ReadAllAvailable) else self._most_bytes
        now = self._directory.reach(before, most)
        return (now if self._last is None else _up_to(now, self._last, before)).offset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[_Part]:
        return self._parts(Reach.of(start), Reach.of(end))


def _up_to(now: Reach, last: Reach, before: Reach) -> Reach:
    """Not beyond what was there when it was asked for."""
    places = {
        name: min(place, last.files.get(name, before.files.get(name, Place())), key=lambda p: p.at)
        for name, place in now.files.items()
    }
    done = all(name in places and places[name].at == p.at for name, p in last.files.items())
    return Reach(places, last.told if done else before.told)


def _schema(manifests: bool) -> pa.Schema:
    """Nullable throughout, as what comes from a data source is."""
    fields = [field.with_nullable(True) for field in arrow_schema()]
    return pa.schema([*fields, *([pa.field("manifest", pa.string())] if manifests else [])])
