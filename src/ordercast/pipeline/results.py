"""The result tables: what is in them, and how to get at them while Spark has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.errors import UsageError
from ordercast.pipeline.blobs import pack, unpack
from ordercast.pipeline.costs import COSTS, THROUGHPUT, costs, throughput
from ordercast.pipeline.saying import JUDGED, once
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.workers import keep_what_is_loaded

__all__ = ["PARTS", "TABLES", "Results", "table_schema"]

TABLES = {**JUDGED, "costs": COSTS, "throughput": THROUGHPUT}
"""The columns of each; `docs/results.md` says what they mean."""


def table_schema(name: str) -> pa.Schema:
    if name not in TABLES:
        raise UsageError(f"there is no table {name!r}: choose from {', '.join(TABLES)}")
    return TABLES[name]


_MEASURED = {"costs": costs, "throughput": throughput}
_FEW = ("runs", "flaws")
"""What is asked for more than once."""


PARTS = "part string, payload binary"
"""What tasks give back: a table's name, and some of its rows."""


class Results:
    """What the tasks gave back. `release` it when done."""

    def __init__(
        self,
        spark: SparkSession,
        parts: DataFrame | None,
        events: Callable[[], DataFrame],
        ready: Sequence[tuple[str, pa.Table]] = (),
    ) -> None:
        """in: parts: `PARTS`; events: the columns of a trace, asked for only if something is to be
        measured; ready: tables' names, and rows of theirs that are here already"""
        self._spark = spark
        self._parts = None if parts is None else parts.persist()
        self._read = events
        self._ready = ready

    @cached_property
    def _events(self) -> DataFrame:
        return self._read()

    def release(self) -> None:
        if self._parts is not None:
            self._parts.unpersist()
        if "_events" in self.__dict__:
            self._events.unpersist()

    def table(self, name: str) -> DataFrame:
        """One of the `TABLES` as a DataFrame."""
        schema = table_schema(name)
        if name in _MEASURED:
            return _MEASURED[name](self._events)

        def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_what_is_loaded()
            for batch in batches:
                for payload in batch.column("payload"):
                    yield from unpack(payload.as_py()).cast(schema).to_batches()

        found = self._payloads(name).mapInArrow(unpacked, spark_schema(schema))
        if name != "flaws":
            return found
        placed = F.col("file").isNotNull()
        return found.where(placed).distinct().union(found.where(~placed))

    def collect(self, name: str) -> pa.Table:
        """The same, here: for what a person will read."""
        return self._few[name] if name in _FEW else self._collect(name)[name]

    @cached_property
    def _few(self) -> dict[str, pa.Table]:
        found = self._collect(*_FEW)
        return found | {"flaws": once(found["flaws"])}

    def _collect(self, *names: str) -> dict[str, pa.Table]:
        found = {name: [TABLES[name].empty_table()] for name in names}
        for name, table in self._ready:
            if name in names:
                found[name].append(table)
        if self._parts is not None:
            for row in self._parts.where(F.col("part").isin(*names)).collect():
                found[row["part"]].append(unpack(row["payload"]))
        return {name: pa.concat_tables(tables) for name, tables in found.items()}

    def stream(self, name: str) -> Iterator[pa.Table]:
        """The same, one task's share after the other: for what is only passing through."""
        if name == "flaws":
            yield self.collect(name)
            return
        if name not in _MEASURED:
            yield from map(unpack, _passing(self._payloads(name)))
            return
        schema = TABLES[name]

        def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_what_is_loaded()
            for batch in batches:
                payload = pack(pa.Table.from_batches([batch]).cast(schema))
                yield pa.RecordBatch.from_pydict({"payload": [payload]})

        payloads = self.table(name).mapInArrow(packed, "payload binary").persist()
        try:
            payloads.count()  # by all tasks at once, before they are asked one by one
            yield from map(unpack, _passing(payloads))
        finally:
            payloads.unpersist()

    def _payloads(self, name: str) -> DataFrame:
        rows = [(bytearray(pack(table)),) for one, table in self._ready if one == name]
        ready = self._spark.createDataFrame(rows, "payload binary")
        if self._parts is None:
            return ready
        found = self._parts.where(F.col("part") == name).select("payload")
        return found.union(ready) if rows else found


def _passing(payloads: DataFrame) -> Iterator[bytes]:
    for row in payloads.toLocalIterator(prefetchPartitions=True):
        yield row["payload"]
