"""A DataFrame's partitions as files, named so that the names sort as the partitions do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import UsageError
from ordercast.pipeline.shipping import SHARED, is_local

__all__ = ["Format", "require_shared", "write_parts"]

Format = Literal["parquet", "jsonl"]


def write_parts(frame: DataFrame, directory: Path, format: Format) -> list[Path]:
    """One file for each partition that has rows, and nothing else."""
    writer = frame.write
    (writer.parquet if format == "parquet" else writer.json)(str(directory.absolute()))
    files: list[Path] = []
    for file in sorted(directory.iterdir()):
        if file.name.startswith("part-"):
            files.append(file.rename(directory / f"part-{len(files):05}.{format}"))
        else:
            file.unlink()
    return files


def require_shared(spark: SparkSession) -> None:
    """Raises a `UsageError` unless tasks write where this process sees it."""
    context = spark.sparkContext
    if not is_local(str(context.master)) and context.getConf().get(SHARED, "false") != "true":
        raise UsageError(
            "workers read and write the files themselves: put both where all of them see them "
            f"under the same path, and say so with --conf {SHARED}=true"
        )
