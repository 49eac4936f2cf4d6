"""How a query is doing: what came in, what was released, and what is held for want of what.

The operator counts as it goes, and Spark carries the counts along (`DataFrame.observe`). A bucket
speaks only in batches that touch it, so what is held in all is the sum of what each said last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["METRICS", "Oldest", "Progress", "Watcher", "observation", "progress_table"]

METRICS = "ordercast"
"""The name of our counts in the progress of a query."""
_STEPS = "steps"
COUNTED = ("rows", "released", "gaps", "late", "expired", "malformed", "duplicates")
_TABLE = "batch long, time string, " + ", ".join(f"{name} long" for name in COUNTED)


class Oldest(NamedTuple):
    """What a bucket holds, and the oldest of it."""

    held: int
    oldest_ms: int | None
    oldest: str | None


@dataclass
class Progress:
    """All that a query has done since its start, and what it holds."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    buckets: dict[int, Oldest] = field(default_factory=dict)
    batch: int = -1

    @property
    def held(self) -> int:
        return sum(bucket.held for bucket in self.buckets.values())

    @property
    def oldest(self) -> Oldest | None:
        """Of the oldest message that waits."""
        known = [one for one in self.buckets.values() if one.oldest_ms is not None]
        return min(known, key=lambda one: one.oldest_ms or 0, default=None)

    def add(self, steps: Iterable[str], *, batch: int) -> dict[str, int]:
        """What the steps of a batch came to; returns the counts of that batch."""
        told = sorted(map(json.loads, steps), key=lambda step: step["step"])
        own = {name: sum(step[name] for step in told) for name in COUNTED}
        for name, count in own.items():
            self.counts[name] += count
        for step in told:
            held = Oldest(step["held"], step["oldest_ms"], step["oldest"])
            self.buckets[step["bucket"]] = held
        self.batch = batch
        return own

    def row(self, own: Mapping[str, int], time: str) -> dict[str, Any]:
        """Of the table of progress."""
        oldest = self.oldest
        return {
            "batch": self.batch, "time": time, **own, "held": self.held,
            "oldest_ms": None if oldest is None else oldest.oldest_ms,
            "oldest": None if oldest is None else oldest.oldest,
        }  # fmt: skip


class Watcher:
    """Follows the progress of one query."""

    def __init__(self, query: StreamingQuery, progress: Progress | None = None) -> None:
        self.query = query
        self.progress = progress or Progress()

    def news(self) -> Iterator[dict[str, Any]]:
        """A row for each batch that has ended since it was last asked; Spark keeps a hundred."""
        for told in self.query.recentProgress:
            observed = told.observedMetrics.get(METRICS)
            if observed is None or told.batchId <= self.progress.batch:
                continue
            own = self.progress.add(observed[_STEPS], batch=told.batchId)
            yield self.progress.row(own, told.timestamp)


def progress_table(spark: SparkSession, query: StreamingQuery) -> DataFrame:
    """A row for each of the last batches: what came in, what became of it, what is held then."""
    schema = f"{_TABLE}, held long, oldest_ms long, oldest string"
    return spark.createDataFrame(list(Watcher(query).news()), schema)


def observation() -> Column:
    """What is observed of the operator's rows: what each step came to, as `processor` tells it."""
    return F.collect_list(F.when(F.col("outcome").isNull(), F.col("why"))).alias(_STEPS)
