"""Work on Spark, result by result."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ordercast.errors import UsageError
from ordercast.pipeline.jobs import run_each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_item_is_worked_off_once(spark: SparkSession) -> None:
    squares = run_each(lambda number: number**2, range(20), spark=spark)
    assert sorted(squares) == [number**2 for number in range(20)]


def test_a_result_is_there_when_its_task_has_ended_not_when_all_have(spark: SparkSession) -> None:
    def nap(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    started = time.monotonic()
    came = {nap: time.monotonic() - started for nap in run_each(nap, [2.0, 0.0], spark=spark)}
    assert list(came) == [0.0, 2.0]
    assert came[2.0] - came[0.0] > 1


def test_who_stops_listening_stops_the_job(spark: SparkSession) -> None:
    def nap(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    started = time.monotonic()
    results = run_each(nap, [0.0, 100.0, 100.0, 100.0], spark=spark)
    assert next(results) == 0.0
    results.close()
    assert time.monotonic() - started < 50
    assert list(run_each(nap, [0.1], spark=spark)) == [0.1]


def test_what_a_task_says_on_purpose_is_said_here(spark: SparkSession) -> None:
    def refuse(_: int) -> None:
        raise UsageError("this cannot be")

    with pytest.raises(UsageError, match=r"^this cannot be$"):
        list(run_each(refuse, [1], spark=spark))


def test_a_task_that_breaks_is_not_passed_over(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="ZeroDivisionError"):
        list(run_each(lambda number: 1 // number, [1, 0], spark=spark))


def test_nothing_to_do_needs_no_spark() -> None:
    assert list(run_each(str, [], master="no such master")) == []
