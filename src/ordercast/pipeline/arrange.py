"""A huge run whose rows lie anyhow, put into ordercast's own layout.

Rows travel in blobs, by process and stretch of positions, so Spark moves few and large values; each
stretch is then small enough to be put in order in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from ordercast.pipeline.arrays import ints_of
from ordercast.pipeline.blobs import pack, unpack
from ordercast.pipeline.huge.segments import Unhealthy
from ordercast.pipeline.kernels.kernel import Ints
from ordercast.pipeline.rows import load
from ordercast.pipeline.source import Source
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.parquet import LogWriter, arrow_schema

__all__ = ["arrange"]

STRETCH_BITS = 20
"""Two to the power of this: the positions in one stretch."""
_MOVED = ("position", "kind", "origin", "number", "destinations")


def arrange(spark: SparkSession, source: Source, run: str, directory: Path) -> None:
    """Writes the run's events to Parquet files in a directory that every task can reach.

    Raises `Unhealthy` if a row is broken: then it would be for nothing.
    """
    pieces = [group.piece for group in source.groups]
    stretches = sum(piece.rows for piece in pieces) // (1 << STRETCH_BITS) + 1

    def scatter(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        for batch in batches:
            for index in batch.column("id").to_pylist():
                events, bad = load([pieces[index]])
                if len(bad):
                    yield pa.RecordBatch.from_pydict({"stretch": [-1], "rows": [b""]}, _BLOBS)
                else:
                    yield from _scattered(events)

    def gather(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        found: dict[int, list[pa.Table]] = {}
        for batch in batches:
            for stretch, rows in zip(batch.column("stretch"), batch.column("rows"), strict=True):
                found.setdefault(stretch.as_py(), []).append(rows.as_py())
        for stretch, blobs in found.items():
            if stretch >= 0:
                _write(run, stretch, pa.concat_tables(map(unpack, blobs)), directory)
            yield pa.RecordBatch.from_pydict({"stretch": [stretch]})

    ids = spark.range(len(pieces), numPartitions=len(pieces))
    blobs = ids.mapInArrow(scatter, "stretch bigint, rows binary")
    done = blobs.repartition(stretches, "stretch").mapInArrow(gather, "stretch bigint")
    if done.where("stretch < 0").limit(1).count():
        raise Unhealthy("has rows that cannot be used")


_BLOBS = pa.schema({"stretch": pa.int64(), "rows": pa.binary()})


def _scattered(events: pa.Table) -> Iterator[pa.RecordBatch]:
    process, position = (ints_of(events.column(n), np.int64) for n in ("process", "position"))
    stretch = process << 40 | position >> STRETCH_BITS
    order = np.argsort(stretch, kind="stable")
    edges = [0, *(np.flatnonzero(np.diff(stretch[order])) + 1).tolist(), len(order)]
    moved = events.select(_MOVED).take(pa.array(order))
    for begin, end in pairwise(edges):
        blob = pack(moved.slice(begin, end - begin))
        yield pa.RecordBatch.from_pydict(
            {"stretch": [int(stretch[order[begin]])], "rows": [blob]}, _BLOBS
        )


def _write(run: str, stretch: int, rows: pa.Table, directory: Path) -> None:
    process = stretch >> 40
    rows = rows.unify_dictionaries().combine_chunks()
    rows = rows.take(pa.array(_in_order(ints_of(rows.column("position"), np.int64))))
    same = {"run": pa.array([run]), "process": pa.array([process], pa.int32())}
    columns = []
    for field in arrow_schema():
        if field.name in same:
            column = pa.repeat(same[field.name][0], len(rows))
        elif field.name in rows.column_names:
            column = rows.column(field.name).cast(field.type)
        else:
            column = pa.nulls(len(rows), field.type)
        columns.append(column)
    with LogWriter(directory / f"{stretch:020}.parquet") as writer:
        writer.write(pa.Table.from_arrays(columns, schema=arrow_schema()))


def _in_order(position: Ints) -> Ints:
    """The order that sorts the positions. Mostly they have no holes, and need no sorting."""
    first = int(position.min())
    if int(position.max()) - first + 1 == len(position):
        order = np.full(len(position), -1)
        order[position - first] = np.arange(len(position))
        if (order >= 0).all():
            return order
    return np.argsort(position, kind="stable")
