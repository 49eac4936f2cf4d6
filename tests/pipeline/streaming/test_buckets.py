"""Buckets: each in a task of its own, wherever Spark's hash sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from ordercast.pipeline.streaming.buckets import FIRST, bucket_ids, buckets_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("count", [1, 2, 3, 16, 61])
def test_spark_sends_each_to_a_partition_of_its_own(count: int, spark: SparkSession) -> None:
    ids = bucket_ids(count)
    assert FIRST in ids
    rows = spark.createDataFrame([(one,) for one in ids], "bucket int")
    found = rows.select("bucket", F.pmod(F.hash("bucket"), F.lit(count)).alias("partition"))
    assert [row.bucket for row in found.orderBy("partition").collect()] == ids


def test_with_fewer_partitions_none_has_more_than_another(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(one,) for one in bucket_ids(16)], "bucket int")
    partition = F.spark_partition_id().alias("partition")
    counts = rows.repartition(4, "bucket").groupBy(partition).count().collect()
    assert [row["count"] for row in counts] == [4, 4, 4, 4]


def test_there_are_as_many_as_tasks_but_no_more_than_help(stateful: SparkSession) -> None:
    assert buckets_for(stateful) == 2
    stateful.conf.set("spark.sql.shuffle.partitions", "200")
    assert buckets_for(stateful) == 16
