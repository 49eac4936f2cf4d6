"""Many rows as one: what Spark's protocol for state in Python would move one by one.

Before the operator, rows are packed into chunks, a few for each bucket. A chunk is an Arrow stream,
compressed: it crosses Spark's exchange and two sockets, and is copied many times on its way, which
takes longer than to compress it.

The order of arrival is (partition of the input, chunk, row). Spark puts the largest file into the
first partition; so they are taken by what is in them, not by number. That is the same when Spark
runs a batch again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa

from ordercast.pipeline.streaming.buckets import FIRST
from ordercast.pipeline.streaming.state import read_table, table_bytes
from ordercast.pipeline.workers import keep_what_is_loaded

__all__ = ["BUCKET", "CHUNKS", "by_arrival", "cut", "pack", "rows_of"]

BUCKET = "ordercast bucket"
CHUNKS = "bucket int, partition int, sequence long, chunk binary"
CHUNK_BYTES = 4 << 20
"""Before it is compressed."""
_GATHERED_BYTES = 32 << 20
_SCHEMA = pa.schema(
    {"bucket": pa.int32(), "partition": pa.int32(), "sequence": pa.int64(), "chunk": pa.binary()}
)
# A thread for each column would cost more than it saves: all cores have tasks.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_ONE_THREAD = pa.ipc.IpcReadOptions(use_threads=False)


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """in: the columns of the stream, and BUCKET; out: CHUNKS"""
    from pyspark import TaskContext

    keep_what_is_loaded()
    context = TaskContext.get()
    assert context is not None
    partition, sequence = context.partitionId(), 0
    if partition == 0:
        # One bucket sees every batch: what was made for another form is refused by the first.
        row = {"bucket": FIRST, "partition": 0, "sequence": -1}
        yield pa.RecordBatch.from_pylist([row], _SCHEMA)
    for rows in _gathered(batches):
        for bucket, some in _by_bucket(rows):
            for chunk in cut(some):
                row = {"bucket": bucket, "partition": partition, "sequence": sequence}
                yield pa.RecordBatch.from_pylist([{**row, "chunk": chunk}], _SCHEMA)
                sequence += 1


def rows_of(chunk: bytes | memoryview) -> pa.Table:
    return read_table(chunk, _ONE_THREAD)


def by_arrival(rows: Iterable[tuple[int, int, bytes]], number: str) -> list[bytes]:
    """The chunks in the order in which they are taken: of partitions, the one whose numbers are
    smaller on the average is first. What it has need not wait then for what others have.

    in: partition, sequence, chunk
    """
    partitions = [
        [chunk for *_, chunk in some] for _, some in groupby(sorted(rows), key=lambda row: row[0])
    ]
    if len(partitions) > 1:
        partitions.sort(key=lambda chunks: _middle(chunks, number))
    return [chunk for chunks in partitions for chunk in chunks]


def _middle(chunks: list[bytes], number: str) -> float:
    """The mean of the numbers, those that are null left out."""
    columns = [_column(chunk, number).drop_null() for chunk in chunks]
    numbers = np.concatenate([np.asarray(column, np.float64) for column in columns])
    return float(numbers.mean()) if len(numbers) else 0.0


def _column(chunk: bytes, name: str) -> pa.ChunkedArray:
    """One of them, without a look at the others."""
    with pa.ipc.open_stream(chunk) as reader:
        at = reader.schema.get_field_index(name)
    return read_table(chunk, pa.ipc.IpcReadOptions(included_fields=[at])).column(name)


def cut(rows: pa.Table) -> Iterator[bytes]:
    """In pieces of moderate size: a batch of Spark's is a few of them, and must fit in memory."""
    pieces = max(1, -(-rows.nbytes // CHUNK_BYTES))
    step = max(1, -(-len(rows) // pieces))
    for start in range(0, len(rows), step):
        yield table_bytes(rows.slice(start, step), _COMPRESSED)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Spark hands over ten thousand rows at a time; chunks are better for being larger."""
    some: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        some.append(batch)
        size += batch.nbytes
        if size >= _GATHERED_BYTES:
            yield pa.Table.from_batches(some).combine_chunks()
            some, size = [], 0
    if some:
        yield pa.Table.from_batches(some).combine_chunks()


def _by_bucket(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    buckets = np.asarray(rows.column(BUCKET).combine_chunks())
    buckets = buckets.astype(np.min_scalar_type(buckets.max(initial=0)))  # small ones sort faster
    order = np.argsort(buckets, kind="stable")
    rows = rows.drop_columns([BUCKET]).take(order)
    present, starts = np.unique(buckets[order], return_index=True)
    ends = [*starts[1:].tolist(), len(rows)]
    for bucket, start, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
        yield bucket, rows.slice(start, end - start)
