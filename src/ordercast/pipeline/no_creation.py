"""No creation: a process delivers only what its origin sent, to it.

A fact is a pair of a process and a message that it delivered. Where the send is not in the log,
and the origin's own log is missing or has holes, the message is an orphan: a doubt.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ordercast.pipeline.findings import finding, witness

__all__ = ["no_creation"]


def no_creation(messages: DataFrame) -> DataFrame:
    """in: `facts.messages`
    out: the same, and no_creation (`findings.finding`)
    """
    created = F.when(F.col("known") | F.col("answerable"), F.col("strays")).otherwise(0)
    return messages.withColumn(
        "no_creation",
        finding(
            checked=F.col("delivered"),
            violations=created,
            doubts=F.col("strays") - created,
            witness=witness(
                process=F.col("stray"),
                position=F.col("strayed_at"),
                origin=F.col("origin"),
                number=F.col("number"),
                missing=~F.col("known"),
            ),
        ),
    )
