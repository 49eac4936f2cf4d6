"""The throughput of the watch: a healthy group's trace as a stream, next to no operator."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.streaming.measure import rows_per_s
from ordercast.pipeline import streaming
from ordercast.pipeline.results import spark_schema
from ordercast.trace.parquet import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["WATCHED", "Trace", "watch_rates"]


@dataclass(frozen=True)
class Trace:
    """Members broadcast in turn, and all deliver in that one order: every property holds."""

    runs: int
    processes: int
    rows: int
    """In a batch, about."""
    batches: int

    @property
    def name(self) -> str:
        return f"r{self.runs}-n{self.processes}"

    def write(self, directory: Path) -> Path:
        """A file a batch."""
        path = directory / self.name
        path.mkdir(parents=True)
        messages = max(1, self.rows // (self.runs * (self.processes + 1)))
        for at in range(self.batches):
            runs = [self._rows(f"run {run}", at * messages, messages) for run in range(self.runs)]
            pq.write_table(pa.concat_tables(runs), path / f"{at:05}.parquet")
        return path

    def _rows(self, run: str, first: int, count: int) -> pa.Table:
        """A message is one send, and then a delivery at each member."""
        width = self.processes + 1
        message = np.repeat(np.arange(first, first + count), width)
        place = np.tile(np.arange(width), count) - 1
        origin = message % self.processes
        process = np.where(place < 0, origin, place)
        # Before it came the deliveries of all earlier messages, and the member's own sends.
        own = (message - process + self.processes - 1) // self.processes
        position = message + own + ((place >= 0) & (process == origin))
        columns = {
            "run": pa.array([run] * len(message)),
            "process": process,
            "position": position,
            "kind": pa.array(np.where(place < 0, "send", "deliver")),
            "origin": origin,
            "number": message // self.processes + 1,
            "time_us": message * 1000 + place + 1,
        }
        schema = arrow_schema()
        nothing = pa.nulls(len(message))
        arrays = [pa.array(columns.get(name, nothing)).cast(schema.field(name).type)
                  for name in schema.names]  # fmt: skip
        return pa.table(arrays, schema.names)


WATCHED = "watch"
_SUBJECTS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "no operator": lambda stream: stream,
    WATCHED: streaming.watch,
}


def watch_rates(spark: SparkSession, trace: Trace, place: Path) -> dict[str, float]:
    """Events a second of each subject."""
    files, found = trace.write(place / "traces"), {}
    for subject, through in _SUBJECTS.items():
        checkpoint = place / "state"
        shutil.rmtree(checkpoint, ignore_errors=True)
        reader = spark.readStream.schema(spark_schema(arrow_schema()))
        source = reader.option("maxFilesPerTrigger", 1).parquet(str(files))
        found[subject] = rows_per_s(through(source), checkpoint, batches=trace.batches)
        shutil.rmtree(checkpoint, ignore_errors=True)
    return found
