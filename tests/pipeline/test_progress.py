"""Whoever waits for Spark is told how far it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ordercast.pipeline.progress import followed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _slowly(number: int) -> int:
    time.sleep(0.4)
    return number


def test_tasks_are_counted_while_they_run(spark: SparkSession) -> None:
    told: list[tuple[int, int]] = []
    with followed(spark, lambda done, total: told.append((done, total))):
        assert spark.sparkContext.parallelize(range(8), 8).map(_slowly).sum() == 28
    assert {total for _, total in told} == {8}
    assert told == sorted(told)
    before = len(told)
    spark.sparkContext.parallelize(range(2), 2).map(_slowly).sum()
    assert len(told) == before, "it goes on after the block"


def test_what_goes_wrong_inside_comes_out(spark: SparkSession) -> None:
    with pytest.raises(ZeroDivisionError), followed(spark, lambda done, total: None):
        raise ZeroDivisionError
