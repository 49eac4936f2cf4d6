"""The traces to judge: which there are, and how they get onto the disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.pipeline.generate import Shape, generate
from benchmarks.pipeline.many_runs import PROCESSES, ManyRuns, generate_runs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Case", "cases"]

_FILES = 8
"""Of a shuffled trace."""


@dataclass(frozen=True)
class Case:
    shape: Shape | ManyRuns
    shuffled: bool = False

    @property
    def name(self) -> str:
        return f"{self.shape.name}-shuffled" if self.shuffled else self.shape.name

    @property
    def title(self) -> str:
        """For a person."""
        mixed = ", shuffled" if self.shuffled else ""
        if isinstance(self.shape, ManyRuns):
            return f"{self.shape.runs:,} runs{mixed}"
        kind = "total" if self.shape.total else "subsets" if self.shape.subsets else "causal"
        faults = ", four faults" if self.shape.faults else ""
        return f"{kind}, n={self.shape.processes}, {short(self.shape.deliveries)}{faults}{mixed}"

    @property
    def many(self) -> bool:
        return isinstance(self.shape, ManyRuns)

    @property
    def total(self) -> bool:
        return isinstance(self.shape, Shape) and self.shape.total

    @property
    def processes(self) -> int:
        return self.shape.processes if isinstance(self.shape, Shape) else PROCESSES

    @property
    def rows(self) -> int:
        return self.shape.deliveries if isinstance(self.shape, Shape) else self.shape.events

    @property
    def plain(self) -> bool:
        """One causal run in ordercast's own layout, in which everything is right."""
        return not (self.many or self.total or self.shuffled or self.faults or self.subsets)

    @property
    def faults(self) -> bool:
        return isinstance(self.shape, Shape) and self.shape.faults

    @property
    def subsets(self) -> bool:
        return isinstance(self.shape, Shape) and self.shape.subsets

    @property
    def events(self) -> int:
        return self.shape.events

    def make(self, spark: SparkSession, directory: Path) -> Path:
        """Where it is, once it has been written if it was not there."""
        if isinstance(self.shape, ManyRuns):
            tidy = generate_runs(self.shape, directory)
        else:
            tidy = generate(self.shape, directory)
        return _shuffle(spark, tidy, directory / self.name) if self.shuffled else tidy


def cases(
    rows: Sequence[int], processes: Sequence[int], *, n: int, runs: int, shuffled_most: int
) -> Iterator[Case]:
    """Small ones first: what a worker still holds of one trace must not count for a smaller one."""
    for deliveries in rows:
        yield from (Case(Shape(size, deliveries)) for size in processes)
    yield from (Case(Shape(n, deliveries, total=True)) for deliveries in rows)
    yield from (Case(Shape(n, deliveries, faults=True)) for deliveries in rows)
    yield from (
        Case(Shape(n, deliveries, subsets=True, faults=faults))
        for deliveries in rows
        for faults in (False, True)
    )
    yield Case(ManyRuns(runs))
    small = [deliveries for deliveries in rows if deliveries <= shuffled_most]
    yield from (Case(Shape(n, deliveries), shuffled=True) for deliveries in small)
    yield Case(ManyRuns(runs), shuffled=True)


def _shuffle(spark: SparkSession, tidy: Path, trace: Path) -> Path:
    """The same rows, each in some file and at some place in it, as Spark writes files by itself."""
    if (trace / "manifest.jsonl").exists():
        return trace
    rows = spark.read.parquet(str(tidy / "events")).withColumn("chance", F.rand(7))
    mixed = rows.repartition(_FILES, "chance").sortWithinPartitions("chance").drop("chance")
    mixed.write.mode("overwrite").parquet(str(trace / "events"), compression="snappy")
    shutil.copy(tidy / "manifest.jsonl", trace)
    return trace


def short(count: int) -> str:
    """1,000,000 as 1 M."""
    return f"{count / 1e6:g} M" if count >= 1_000_000 else f"{count:,}"
