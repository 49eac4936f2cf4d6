"""FIFO: a process delivers what one origin sends it in the order in which it was sent.

    for each process p and origin o, the messages that o sent to p, in send order:
        n is late if one before it was delivered after it     -> an inversion
        n is missing one if one before it never was           -> an omission

A fact is a first delivery of a message that is known and addressed to the process. In a log with
holes an omission is a doubt only: the hole may be where the delivery was.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ordercast.pipeline.findings import finding, summed, witness

__all__ = ["fifo", "predecessor"]

CHANNEL = ("run", "process", "origin")


def fifo(pairs: DataFrame) -> DataFrame:
    """in: `facts.pairs`
    out: `findings.summed`; the witness names n's place only, and `predecessor` the messages
    """
    before = (
        Window.partitionBy(*CHANNEL).orderBy("sent_at").rowsBetween(Window.unboundedPreceding, -1)
    )
    overtaken = F.max("first").over(before) > F.col("first")
    skipped = F.max(F.col("first").isNull()).over(before)
    facts = (
        _owed(pairs)
        .select(
            *CHANNEL,
            "first",
            "complete",
            F.coalesce(overtaken, F.lit(False)).alias("late"),
            F.coalesce(skipped, F.lit(False)).alias("missing"),
        )
        .where(F.col("first").isNotNull())
    )
    # Channel by channel first: a least number is found by hashing, a least struct by sorting.
    violating = F.col("late") | (F.col("missing") & F.col("complete"))
    doubtful = F.col("missing") & ~violating
    channels = facts.groupBy(*CHANNEL).agg(
        F.count("*").alias("checked"),
        F.count_if(violating).alias("violations"),
        F.count_if(doubtful).alias("doubts"),
        F.min(F.when(violating, F.col("first"))).alias("violated_at"),
        F.min(F.when(doubtful, F.col("first"))).alias("doubted_at"),
    )
    found = finding(
        checked=F.col("checked"),
        violations=F.col("violations"),
        doubts=F.col("doubts"),
        witness=witness(
            process=F.col("process"),
            position=F.coalesce("violated_at", "doubted_at"),
            other=F.col("origin"),
        ),
    )
    return summed(channels.withColumn("fifo", found), "fifo")


def predecessor(pairs: DataFrame, suspects: DataFrame) -> DataFrame:
    """For a delivery that broke the order: the earliest sent message that was due before it.

    in: `facts.pairs`; suspects: run, process, origin, position (of that delivery), inversion (only
    a late message will do, as in a log with holes it alone is proof)
    out: run, process, number (of the message that was due), missing, later (the one delivered)
    """
    delivery = F.col("first") == F.col("position")
    due = (F.col("first") > F.col("position")) | (F.col("first").isNull() & ~F.col("inversion"))
    earliest = F.struct("sent_at", "number", F.col("first").isNull().alias("missing"))
    return (
        _owed(pairs)
        .join(F.broadcast(suspects), [*CHANNEL])
        .groupBy("run", "process")
        .agg(
            F.min(F.when(due, earliest)).alias("due"),
            F.max(F.when(delivery, F.col("number"))).alias("later"),
        )
        .select("run", "process", "due.number", "due.missing", "later")
    )


def _owed(pairs: DataFrame) -> DataFrame:
    return pairs.where(F.col("sent_at").isNotNull() & F.col("process").isNotNull())
