"""A sorted data set, part after part: a DataFrame's partitions, or files that were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

__all__ = ["Ordered", "Partitions", "WrittenFiles"]

Work = Callable[[int, pa.Table], Iterator[pa.RecordBatch]]


class Ordered(Protocol):
    @property
    def frame(self) -> DataFrame:
        """All of it, in any order."""

    def each(self, work: Work, schema: StructType | str) -> DataFrame:
        """What `work` makes of the number and the rows of each part that has any."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of a DataFrame, in the order of their numbers."""

    frame: DataFrame

    def each(self, work: Work, schema: StructType | str) -> DataFrame:
        names = self.frame.columns

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            if found := list(batches):
                context = TaskContext.get()
                assert context is not None
                table = pa.Table.from_batches(found).rename_columns(names)
                yield from work(context.partitionId(), table)

        # pyspark would look for a name with a dot in vain.
        return self.frame.toDF(*map(str, range(len(names)))).mapInArrow(run, schema)


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Files, in the order of their names; they must be where tasks can see them."""

    frame: DataFrame
    """What Spark reads from them, as far as it matters."""
    files: tuple[Path, ...]

    def each(self, work: Work, schema: StructType | str) -> DataFrame:
        files, wanted = self.files, to_arrow_schema(self.frame.schema, timezone="UTC")

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for part in batch.column("id").to_pylist():
                    table = _read(files[part], wanted)
                    if len(table):
                        yield from work(part, table)

        ids = self.frame.sparkSession.range(len(files), numPartitions=len(files))
        return ids.mapInArrow(run, schema)


def _read(file: Path, wanted: pa.Schema) -> pa.Table:
    if file.suffix == ".parquet":
        return pq.read_table(file, columns=wanted.names, partitioning=None).cast(wanted)
    exact = any(pa.types.is_decimal(kind) for kind in wanted.types)
    decoder = msgspec.json.Decoder(float_hook=Decimal if exact else None)
    rows = map(decoder.decode, file.read_bytes().splitlines())
    values = [[_pairs(row.get(name)) for name in wanted.names] for row in rows]
    columns = zip(*values, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, wanted, strict=True)], wanted)


def _pairs(value: object) -> object:
    """A map, as Arrow takes it."""
    return list(value.items()) if isinstance(value, dict) else value
