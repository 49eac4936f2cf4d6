"""Runs whose rows lie all mixed up, brought together by one shuffle.

Rows travel in blobs, by bucket, so Spark moves few and large values; all of a run is in one bucket.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ordercast.pipeline.blobs import pack, unpack
from ordercast.pipeline.described import DESCRIBED
from ordercast.pipeline.rows import FLAWS, load
from ordercast.pipeline.rules import COLUMNS, flaws, typed
from ordercast.pipeline.source import Source
from ordercast.pipeline.workers import keep_what_is_loaded

__all__ = ["Together", "gathered", "pack_frames", "pack_source"]

_BUCKETS = "bucket int, part string, payload binary"
_ARROW_BUCKETS = pa.schema({"bucket": pa.int32(), "part": pa.string(), "payload": pa.binary()})
_BLOB_ROWS = 1 << 16


class Together(NamedTuple):
    """All there is of some runs."""

    events: pa.Table
    described: pa.Table
    flaws: pa.Table


def pack_source(spark: SparkSession, source: Source, buckets: int) -> DataFrame:
    """out: bucket, part (a field of `Together`), payload"""
    pieces = (*source.lines, *(group.piece for group in source.groups))
    described = pack(source.described)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            for index in batch.column("id").to_pylist():
                if index == len(pieces):
                    yield from _in_buckets("described", unpack(described), buckets)
                    continue
                events, bad = load([pieces[index]])
                yield from _in_buckets("events", events, buckets)
                yield from _in_buckets("flaws", bad, buckets)

    size = len(pieces) + 1
    return spark.range(size, numPartitions=size).mapInArrow(run, _BUCKETS)


def pack_frames(events: DataFrame, runs: DataFrame, buckets: int) -> DataFrame:
    """The same from DataFrames: `rules.COLUMNS` as far as they are there, and `DESCRIBED`."""
    names = [name for name in COLUMNS if name in events.columns]

    def pack_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            table = pa.Table.from_batches([batch])
            bad = flaws(table)
            sound = np.ones(len(table), np.bool_)
            sound[[row for row, _ in bad]] = False
            told = [{"flaw": words, "run": table["run"][row].as_py()} for row, words in bad]
            yield from _in_buckets("events", typed(table.filter(pa.array(sound))), buckets)
            yield from _in_buckets("flaws", pa.Table.from_pylist(told, FLAWS), buckets)

    def pack_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            known = {name: batch.column(name) for name in batch.schema.names}
            columns = [known.get(f.name, pa.nulls(len(batch))).cast(f.type) for f in DESCRIBED]
            yield from _in_buckets("described", pa.table(columns, schema=DESCRIBED), buckets)

    packed = events.select(*names).mapInArrow(pack_events, _BUCKETS)
    return packed.union(runs.mapInArrow(pack_runs, _BUCKETS))


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[Together]:
    """Some buckets, unpacked one by one.

    in: bucket, part, payload; all of each bucket
    """
    found: dict[int, dict[str, list[pa.Table]]] = {}
    for batch in batches:
        columns = (batch.column(name) for name in ("bucket", "part", "payload"))
        for bucket, part, payload in zip(*columns, strict=True):
            mine = found.setdefault(bucket.as_py(), {name: [] for name in Together._fields})
            mine[part.as_py()].append(unpack(payload.as_py()))
    nothing = typed(pa.table({name: pa.nulls(0) for name in COLUMNS}))
    while found:
        _, mine = found.popitem()
        yield Together(
            pa.concat_tables([nothing, *mine["events"]]).unify_dictionaries(),
            pa.concat_tables([DESCRIBED.empty_table(), *mine["described"]]),
            pa.concat_tables([FLAWS.empty_table(), *mine["flaws"]]),
        )


def _in_buckets(part: str, table: pa.Table, buckets: int) -> Iterator[pa.RecordBatch]:
    """The table's rows by bucket, in blobs of moderate size."""
    if not len(table):
        return
    run = table.column("run")
    words = run if pa.types.is_dictionary(run.type) else run.dictionary_encode()
    for chunk, start in _chunks(words.unify_dictionaries()):
        names = chunk.dictionary.to_pylist()
        bucket_of = np.array([_bucket(name, buckets) for name in names] + [0], np.int32)
        codes = pc.fill_null(chunk.indices, len(names)).to_numpy()
        mine = bucket_of[codes]
        order = np.argsort(mine, kind="stable")
        rows = table.slice(start, len(chunk)).take(pa.array(order))
        edges = [0, *(np.flatnonzero(np.diff(mine[order])) + 1).tolist(), len(order)]
        for begin, end in pairwise(edges):
            for at in range(begin, end, _BLOB_ROWS):
                blob = pack(_compact(rows.slice(at, min(_BLOB_ROWS, end - at))))
                yield pa.RecordBatch.from_pydict(
                    {"bucket": [mine[order[at]]], "part": [part], "payload": [blob]},
                    _ARROW_BUCKETS,
                )


def _compact(table: pa.Table) -> pa.Table:
    """Without the names of all the runs that are in other slices."""
    if not pa.types.is_dictionary(table.schema.field("run").type):
        return table
    names = table.column("run").cast(pa.string()).dictionary_encode()
    return table.set_column(table.schema.get_field_index("run"), "run", names)


def _chunks(column: pa.ChunkedArray) -> Iterator[tuple[pa.DictionaryArray, int]]:
    start = 0
    for chunk in column.chunks:
        yield chunk, start
        start += len(chunk)


def _bucket(run: str | None, buckets: int) -> int:
    return zlib.crc32((run or "").encode()) % buckets
