"""Columns by the names that people have given them, whatever is in those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

__all__ = ["col", "cols", "exact_names"]

_CASE = "spark.sql.caseSensitive"


def col(name: str) -> Column:
    """Spark would take `page.id` for a field of `page`."""
    return F.col(f"`{name.replace('`', '``')}`")


def cols(names: Iterable[str]) -> list[Column]:
    return [col(name) for name in names]


@contextmanager
def exact_names(spark: SparkSession) -> Iterator[None]:
    """Within it, names that differ only in case are different names, of columns and of origins."""
    before = spark.conf.get(_CASE)
    spark.conf.set(_CASE, "true")
    try:
        yield
    finally:
        spark.conf.set(_CASE, before or "false")
