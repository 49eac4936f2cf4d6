"""What Spark's Python workers are spared between tasks."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from resource import RUSAGE_SELF, getrusage
from typing import TYPE_CHECKING

import pyarrow as pa

from ordercast.pipeline.workers import keep_memory, keep_what_is_loaded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many objects the collector passes over, after one call and after another."""
    keep_what_is_loaded()
    once = gc.get_freeze_count()
    mine = [[one] for one in range(1000)]
    keep_what_is_loaded()
    again = gc.get_freeze_count() - once
    yield from (pa.RecordBatch.from_pydict({"once": [once], "again": [again]}) for _ in batches)
    del mine


def test_a_worker_keeps_what_it_has_loaded_and_nothing_that_a_task_makes(
    spark: SparkSession,
) -> None:
    before = gc.get_freeze_count()
    [row] = spark.range(1, numPartitions=1).mapInArrow(frozen, "once long, again long").collect()
    assert row.once > 10_000
    assert row.again == 0
    keep_what_is_loaded()
    assert gc.get_freeze_count() == before, "this process is no worker"


def test_a_worker_keeps_its_memory(spark: SparkSession) -> None:
    """Of 80 MiB, in pieces: the pages of the first serve the others."""

    def faults(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_memory()
        counted = []
        for _ in range(5):
            before = getrusage(RUSAGE_SELF).ru_minflt
            some = bytearray(40 << 20)
            pa.array([bytes(some)]).cast(pa.large_binary()).fill_null(b"")
            del some
            counted.append(getrusage(RUSAGE_SELF).ru_minflt - before)
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"first": counted[:1], "later": [sum(counted[1:])]})

    [row] = spark.range(1, numPartitions=1).mapInArrow(faults, "first long, later long").collect()
    # It would be four times as many.
    assert row.later < 2 * row.first, f"{row.first} pages at first, {row.later} in four more turns"
