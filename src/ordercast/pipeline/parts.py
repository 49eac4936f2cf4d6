"""A DataFrame's partitions as files, named so that the names sort as the partitions do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import UsageError
from ordercast.pipeline.shipping import SHARED, is_local

__all__ = ["Format", "require_shared", "require_shared_by", "sees_files", "write_parts"]

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


def sees_files(master: str, config: Mapping[str, str]) -> bool:
    """Do a master's tasks see this machine's files, as far as the settings tell?"""
    return is_local(master) or config.get(SHARED) == "true"


def require_shared(master: str, config: Mapping[str, str]) -> None:
    """Raises a `UsageError` unless tasks write where this process sees it."""
    if not sees_files(master, config):
        raise UsageError(
            "workers read and write the files themselves: put both where all of them see them "
            f"under the same path, and say so with --conf {SHARED}=true"
        )


def require_shared_by(spark: SparkSession) -> None:
    """The same, for a session that is running."""
    context = spark.sparkContext
    require_shared(str(context.master), dict(context.getConf().getAll()))
