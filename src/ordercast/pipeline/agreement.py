"""Agreement: what one process delivers, every correct process that it is addressed to delivers.

A fact is a pair of a message and a correct process it is addressed to. The message counts once a
correct process has delivered it; for uniform agreement once any has, though it crashed later.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ordercast.pipeline.findings import finding, witness

__all__ = ["agreement", "uniform_agreement"]


def agreement(messages: DataFrame) -> DataFrame:
    """in: `facts.messages`
    out: the same, and agreement (`findings.finding`)
    """
    return messages.withColumn("agreement", _follows_from(F.col("correct_deliverer")))


def uniform_agreement(messages: DataFrame) -> DataFrame:
    """in: `facts.messages`
    out: the same, and uniform_agreement (`findings.finding`)
    """
    return messages.withColumn("uniform_agreement", _follows_from(F.col("deliverer")))


def _follows_from(deliverer: Column) -> Column:
    counts = F.col("known") & deliverer.isNotNull()
    unmet = F.when(counts, F.col("unmet")).otherwise(0)
    return finding(
        checked=F.when(counts, F.col("owed")).otherwise(0),
        violations=F.when(F.col("settled"), unmet).otherwise(0),
        doubts=F.when(F.col("settled"), 0).otherwise(unmet),
        witness=witness(
            process=F.col("debtor"),
            origin=F.col("origin"),
            number=F.col("number"),
            other=deliverer,
        ),
    )
