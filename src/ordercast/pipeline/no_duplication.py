"""No duplication: no process delivers a message twice.

A fact is a pair of a process and a message that it delivered.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ordercast.pipeline.findings import finding, witness

__all__ = ["no_duplication", "second_delivery"]


def no_duplication(messages: DataFrame) -> DataFrame:
    """in: `facts.messages`
    out: the same, and no_duplication (`findings.finding`); the witness's position is a bound, which
    `second_delivery` makes exact
    """
    return messages.withColumn(
        "no_duplication",
        finding(
            checked=F.col("delivered"),
            violations=F.col("repeated"),
            doubts=F.lit(0),
            witness=witness(process=F.col("repeater"), position=F.col("repeated_at")),
        ),
    )


def second_delivery(rows: DataFrame, suspects: DataFrame) -> DataFrame:
    """The earliest second delivery by a process that is known to have one.

    A pair's first and last delivery are easily counted, its second is not. But some second
    delivery comes no later than the least of the last ones, so the process's log up to there is
    all it takes.

    in: `facts.message_rows`; suspects: run, process, position (that bound)
    out: run, process, origin, number, position, earlier (of the first delivery)
    """
    bounds = suspects.select("run", "process", F.col("position").alias("bound"))
    again = (
        rows.where(~F.col("sent"))
        .join(F.broadcast(bounds), ["run", "process"])
        .where(F.col("position") <= F.col("bound"))
        .groupBy("run", "process", "origin", "number")
        .agg(F.sort_array(F.collect_list("position")).alias("at"))
        .where(F.size("at") > 1)
    )
    second = F.struct(
        F.col("at")[1].alias("position"), F.col("at")[0].alias("earlier"), "origin", "number"
    )
    return (
        again.groupBy("run", "process")
        .agg(F.min(second).alias("one"))
        .select("run", "process", "one.*")
    )
