"""What became of each message at each process, from the events alone: what `costs` are made of."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

__all__ = ["PLACE", "journeys", "spans"]

PLACE = ("run", "process")
# Rows are sorted by these, which is cheap only as far as the first one tells them apart.
_MESSAGE = ("number", "origin", "run")


def spans(events: DataFrame) -> DataFrame:
    """From when to when each process's log goes, by its own clock.

    in: run, process, time_us
    out: run, process, first_us, last_us (null if no row has a time)
    """
    ends = F.min("time_us").alias("first_us"), F.max("time_us").alias("last_us")
    return events.groupBy(*PLACE).agg(*ends)


def journeys(events: DataFrame) -> DataFrame:
    """What became of each message at each process where it arrived or was delivered.

    in: the columns of a trace
    out: run, process, origin, number; class: broadcast, multicast or unicast, by the send row's
    destinations, or null if it is missing; addressed (is the process one of them? null if that
    cannot be told); sent_us; received, received_us (position and time of the first receive);
    copies, control_bytes (all receives); delivered, delivered_us (the first delivery); bytes
    """
    kind, position = F.col("kind"), F.col("position")
    at = {word: F.when(kind == word, position) for word in ("send", "receive", "deliver")}
    send = F.struct("time_us", "destinations", "bytes")
    met = (
        events.where(kind.isin(*at))
        # A message has few rows at one process: to merge them before they travel would not pay.
        .repartition(*_MESSAGE)
        .groupBy(*_MESSAGE, "process")
        .agg(
            F.min_by(send, at["send"]).alias("send"),
            F.min(at["receive"]).alias("received"),
            F.min_by("time_us", at["receive"]).alias("received_us"),
            F.count(at["receive"]).alias("copies"),
            F.sum(F.when(kind == "receive", F.col("control_bytes"))).alias("control_bytes"),
            F.min(at["deliver"]).alias("delivered"),
            F.min_by("time_us", at["deliver"]).alias("delivered_us"),
            F.min_by("bytes", at["deliver"]).alias("bytes"),
        )
    )
    # The origin's own row comes first, and only it can have the send.
    origin_first = (
        Window.partitionBy(*_MESSAGE)
        .orderBy(F.col("process") != F.col("origin"))
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    destinations = F.col("send.destinations")
    return (
        met.withColumn("send", F.first("send").over(origin_first))
        .where(F.col("received").isNotNull() | F.col("delivered").isNotNull())
        .select(
            *PLACE,
            "origin",
            "number",
            F.when(F.col("send").isNotNull(), _class(destinations)).alias("class"),
            F.when(
                F.col("send").isNotNull(),
                F.coalesce(F.array_contains(destinations, F.col("process")), F.lit(True)),
            ).alias("addressed"),
            F.col("send.time_us").alias("sent_us"),
            *("received", "received_us", "copies", "control_bytes", "delivered", "delivered_us"),
            F.coalesce("bytes", "send.bytes").alias("bytes"),
        )
    )


def _class(destinations: Column) -> Column:
    one = F.size(F.array_distinct(destinations)) == 1
    return F.when(destinations.isNull(), "broadcast").when(one, "unicast").otherwise("multicast")
