"""Ordered messages as files that any reader sees exactly once.

A batch is one directory, `batch=N`, that appears whole: it is written under a name that readers
pass over, and then renamed. Spark runs a batch again if it was killed before it had noted the end
of it; the directory is then replaced by its equal, or by what a policy that was changed meanwhile
makes of the batch.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["DirectorySink"]


@dataclass(frozen=True)
class DirectorySink:
    """For `foreachBatch`: what is in order goes to one directory, all else to another."""

    ordered: Path
    aside: Path
    format: str = "parquet"

    def __call__(self, batch: DataFrame, number: int) -> None:
        # Without it, the operator would run once for each of the two.
        batch.persist()
        try:
            in_order = F.col("position").isNotNull()
            self._write(batch.where(in_order), self.ordered, number)
            self._write(batch.where(~in_order), self.aside, number)
        finally:
            batch.unpersist()

    def _write(self, rows: DataFrame, directory: Path, number: int) -> None:
        unfinished, finished = directory / f".batch-{number}", directory / f"batch={number}"
        if rows.isEmpty():
            shutil.rmtree(finished, ignore_errors=True)
            return
        directory.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(unfinished, ignore_errors=True)
        rows.write.format(self.format).save(str(unfinished))
        shutil.rmtree(finished, ignore_errors=True)
        unfinished.rename(finished)
