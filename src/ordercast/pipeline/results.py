"""The result tables: what is in them, and how to get at them while Spark has them.

`concluded` runs in the tasks, so what a run held and promised is known wherever its verdicts are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ordercast.errors import UsageError
from ordercast.pipeline.blobs import pack, unpack
from ordercast.pipeline.costs import COSTS, THROUGHPUT, costs, throughput
from ordercast.pipeline.judged import SEEN, VERDICTS, VIOLATIONS, Judged
from ordercast.pipeline.kernels.kernel import Bools
from ordercast.pipeline.rows import FLAWS
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import ORDERS, PROPERTIES, promised

__all__ = [
    "PARTS",
    "TABLES",
    "Here",
    "Results",
    "concluded",
    "once",
    "table_schema",
]

TABLES = {
    "verdicts": VERDICTS.append(pa.field("promised", pa.bool_())),
    "violations": VIOLATIONS,
    "runs": pa.schema(
        [
            *SEEN,
            pa.field("order_held", pa.string()),
            pa.field("promised", pa.list_(pa.string())),
            pa.field("outcome", pa.string()),
            pa.field("manifest", pa.string()),
        ]
    ),
    "flaws": FLAWS,
    "costs": COSTS,
    "throughput": THROUGHPUT,
}
"""The columns of each; `docs/results.md` says what they mean."""


def table_schema(name: str) -> pa.Schema:
    if name not in TABLES:
        raise UsageError(f"there is no table {name!r}: choose from {', '.join(TABLES)}")
    return TABLES[name]


_MEASURED = {"costs": costs, "throughput": throughput}
_FEW = ("runs", "flaws")
"""What is asked for more than once."""
_OUTCOMES = pa.array(["holds", "violated", "unknown"])
_BY_DEFAULT = promised(Manifest("", ()), PROPERTIES)


PARTS = "part string, payload binary"
"""What tasks give back: a table's name, and some of its rows."""


class Here:
    """What was found in this process."""

    def __init__(self, ready: Sequence[tuple[str, pa.Table]]) -> None:
        """in: tables' names, and rows of theirs"""
        self._ready = ready

    def collect(self, name: str) -> pa.Table:
        tables = [table for one, table in self._ready if one == name]
        found = pa.concat_tables([TABLES[name].empty_table(), *tables])
        return once(found) if name == "flaws" else found

    def release(self) -> None:
        """As of `Results`: nothing is held."""


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


def concluded(
    judged: Judged,
    described: pa.Table,
    properties: Collection[str],
    demanded: Collection[str] | None,
    excused: Collection[str] = (),
) -> dict[str, pa.Table]:
    """What was judged, as rows of the `TABLES`; those that have none are left out.

    in: described: `DESCRIBED`, in any order; `demanded` is what must hold whatever was promised,
    and `excused` what of that need not be known
    """
    runs = described.take(pc.index_in(judged.seen["run"], described["run"].combine_chunks()))
    wanted = [name for name in PROPERTIES if name in properties]
    binding = _binding(runs["promises"], wanted, demanded)
    told = pc.index_in(judged.verdicts["verdict"], _OUTCOMES).to_numpy().reshape(binding.shape)
    binding &= ~((told == 2) & np.isin(wanted, list(excused)))
    broken, doubtful = (((told == code) & binding).any(axis=1) for code in (1, 2))
    new = {
        "order_held": pa.array(ORDERS).take(pa.array(_rungs(told == 0, wanted))),
        "promised": _lists(binding, wanted),
        "outcome": _OUTCOMES.take(pa.array(np.where(broken, 1, np.where(doubtful, 2, 0)))),
        "manifest": runs["manifest"],
    }
    tables = {
        "flaws": judged.flaws,
        "verdicts": judged.verdicts.append_column("promised", pa.array(binding.ravel())),
        "violations": judged.violations,
        "runs": pa.table([*judged.seen.columns, *new.values()], schema=TABLES["runs"]),
    }
    return {name: table for name, table in tables.items() if len(table)}


def _binding(
    promises: pa.ChunkedArray, wanted: list[str], demanded: Collection[str] | None
) -> Bools:
    """run × property: must it hold?"""
    size = len(promises)
    if demanded is not None:
        return np.tile(np.array([name in demanded for name in wanted], np.bool_), (size, 1))
    silent = np.asarray(promises.is_null().to_numpy(), np.bool_)
    binding = np.outer(silent, [name in _BY_DEFAULT for name in wanted])
    lengths = pc.fill_null(pc.list_value_length(promises), 0).to_numpy()
    names = pc.list_flatten(promises)
    codes = pc.fill_null(pc.index_in(names, pa.array(wanted, pa.string())), -1).to_numpy()
    binding[np.repeat(np.arange(size), lengths)[codes >= 0], codes[codes >= 0]] = True
    return binding


def _rungs(holds: Bools, wanted: list[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each run how far up the ladder it held; what was not judged is no gap in it."""
    held = np.ones(len(holds), np.bool_)
    height = np.zeros(len(holds), np.int64)
    for rung, name in enumerate(ORDERS):
        if name in wanted:
            held = held & holds[:, wanted.index(name)]
            height[held] = rung
    return height


def _lists(binding: Bools, wanted: list[str]) -> pa.Array:
    ends = np.concatenate(([0], np.cumsum(binding.sum(axis=1)))).astype(np.int32)
    names = pa.array(wanted, pa.string()).take(pa.array(np.nonzero(binding)[1]))
    return pa.ListArray.from_arrays(pa.array(ends), names)


def once(flaws: pa.Table) -> pa.Table:
    """Row groups at the ends of items are read twice, and so are their flaws. What has no place of
    its own was found by comparing rows, and only once."""
    placed = flaws["file"].is_valid()
    first = flaws.filter(placed).group_by(FLAWS.names).aggregate([]).select(FLAWS.names)
    return pa.concat_tables([first, flaws.filter(pc.invert(placed))])
