"""Validity: what a correct process sends is delivered.

A message that is addressed to its sender makes one fact, its delivery there; another makes one for
each correct process that it is addressed to.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ordercast.pipeline.findings import finding, witness

__all__ = ["validity"]


def validity(messages: DataFrame) -> DataFrame:
    """in: `facts.messages`
    out: the same, and validity (`findings.finding`)
    """
    counts = F.col("known") & F.col("sender_correct")
    to_sender, returned = F.col("to_sender"), F.col("returned").cast("int")
    owed = F.when(counts, F.when(to_sender, 1).otherwise(F.col("owed"))).otherwise(0)
    unmet = F.when(counts, F.when(to_sender, 1 - returned).otherwise(F.col("unmet"))).otherwise(0)
    return messages.withColumn(
        "validity",
        finding(
            checked=owed,
            violations=F.when(F.col("settled"), unmet).otherwise(0),
            doubts=F.when(F.col("settled"), 0).otherwise(unmet),
            witness=witness(
                process=F.when(to_sender, F.col("origin")).otherwise(F.col("debtor")),
                origin=F.col("origin"),
                number=F.col("number"),
            ),
        ),
    )
