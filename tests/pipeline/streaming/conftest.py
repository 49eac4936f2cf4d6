"""Streams of small files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .builders import record
from .oracle import Message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "room string, origin int, number long, stamp array<long>, label long"


Writer = Callable[..., Path]


@pytest.fixture
def files(tmp_path: Path) -> Writer:
    """Writes batches of messages, a file each."""

    def write(batches: Sequence[Sequence[Message]], *, width: int, name: str = "in") -> Path:
        directory = tmp_path / name
        directory.mkdir(exist_ok=True)
        already = len(list(directory.iterdir()))
        for at, batch in enumerate(batches, already):
            lines = [json.dumps(record(message, width=width)) + "\n" for message in batch]
            file = directory / f"{at:04}.json"
            file.write_text("".join(lines))
            os.utime(file, (at, at))  # Spark takes the older ones first
        return directory

    return write


def stream(spark: SparkSession, directory: Path, **options: Any) -> DataFrame:
    """A file a batch."""
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    return reader.options(**options).json(str(directory))


def run(ordered: DataFrame, checkpoint: Path, sink: Any) -> Any:
    """Takes what is there; the query, ended."""
    from ordercast.pipeline.streaming import await_query

    writer = ordered.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert await_query(query, 200)
    finally:
        query.stop()
    return query
