"""What the messages of a run cost, from its events alone: delays, waits, queues, copies, bytes.

Plain Spark: DataFrame in, DataFrame out. The rows about a message meet in a shuffle by (run,
origin, number); what became of it at each process goes on in another by (run, process). Nothing
gathers a run, and what a task holds in memory does not grow with it.

Times are the clocks of the processes, as they stand in the trace. A latency spans two clocks, so it
may come out negative: such a delivery is counted under `clock_skew` and left out of the quantiles.

Quantiles are nearest ranks by `percentile_approx`: exact for up to ACCURACY / 2 values, and off by
no more than one rank in ACCURACY beyond that, in bounded memory. Maxima are always exact.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

__all__ = ["ACCURACY", "COSTS", "THROUGHPUT", "costs", "journeys", "spans", "throughput"]

ACCURACY = 10_000
BUCKETS_MOST = 316
"""The widths are powers of ten, so this is about a hundred: from 32 to 316 buckets a run."""

# Rows are sorted by these, which is cheap only as far as the first one tells them apart.
_MESSAGE = ("number", "origin", "run")
_PLACE = ("run", "process")
_CLASS = (*_PLACE, "class")
_WIDTHS_US = tuple(10**power for power in range(17))
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_SPREAD = [f"{name}_{word}_us" for name in ("latency", "held") for word in (*_QUANTILES, "max")]

COSTS = pa.schema(
    {
        "run": pa.string(),
        "process": pa.int32(),
        "class": pa.string(),
        "deliveries": pa.int64(),
        **dict.fromkeys(_SPREAD, pa.int64()),
        "clock_skew": pa.int64(),
        "depth_max": pa.int64(),
        "depth_mean": pa.float64(),
        "copies": pa.float64(),
        "bytes": pa.float64(),
        "control_bytes": pa.float64(),
    }
)
THROUGHPUT = pa.schema(
    {
        "run": pa.string(),
        "process": pa.int32(),
        "width_us": pa.int64(),
        "bucket_us": pa.int64(),
        "sends": pa.int64(),
        "deliveries": pa.int64(),
    }
)


def costs(events: DataFrame) -> DataFrame:
    """One row per run, process and class of messages that came there.

    in: the columns of a trace
    out: `COSTS`: run, process, class (`journeys`); deliveries (messages delivered, each once);
    latency_{p50,p90,p99,max}_us (send to first delivery, of other processes' messages);
    held_{…}_us (first receive to first delivery); clock_skew (deliveries left out of these);
    depth_max, depth_mean (messages received and not yet delivered: the most at once, and over the
    time of the process's log); copies (receive rows), bytes (of the payload) and control_bytes (on
    the copies), each per message delivered. What the trace does not tell is null.
    """
    return (
        _marks(journeys(events))
        .groupBy(*_CLASS)
        .agg(
            F.count("delivered").alias("deliveries"),
            *_measured("latency"),
            *_measured("held"),
            F.sum((F.least("latency_us", "held_us") < 0).cast("bigint")).alias("clock_skew"),
            F.max("depth").alias("depth_max"),
            F.sum(_sound("held_us")).alias("held_us"),
            F.count("waiting_since").alias("waiting"),
            # Five thousand of today's clocks are more than a bigint holds.
            F.sum(F.col("waiting_since").cast("decimal(20)")).alias("since"),
            F.sum("copies").alias("copies"),
            F.sum("control_bytes").alias("control_bytes"),
            F.avg("bytes").alias("bytes"),
        )
        .join(spans(events), list(_PLACE))
        .select(
            *_CLASS,
            "deliveries",
            *_spread("latency"),
            *_spread("held"),
            "clock_skew",
            F.when(F.col("copies") > 0, F.col("depth_max")).alias("depth_max"),
            F.when(F.col("copies") > 0, _depth_mean()).alias("depth_mean"),
            _each("copies"),
            "bytes",
            _each("control_bytes"),
        )
    )


def throughput(events: DataFrame) -> DataFrame:
    """What each process sent and delivered, over time.

    in: run, process, kind, time_us
    out: `THROUGHPUT`: run, process, width_us (of the run's buckets: 1 ms, 10 ms, …), bucket_us
    (where this one starts), sends, deliveries. Rows without a time are in a bucket that is null.
    """
    span = F.try_subtract(F.max("time_us"), F.min("time_us"))
    fits = [F.when(span <= BUCKETS_MOST * width, F.lit(width)) for width in _WIDTHS_US]
    widths = events.groupBy("run").agg(F.coalesce(*fits).cast("bigint").alias("width_us"))
    kind, time, width = F.col("kind"), F.col("time_us"), F.col("width_us")
    return (
        events.where(kind.isin("send", "deliver"))
        .join(F.broadcast(widths), "run")
        .withColumn("bucket_us", time - F.pmod(time, width))
        .withColumn("width_us", F.when(time.isNotNull(), width))
        .groupBy(*_PLACE, "width_us", "bucket_us")
        .agg(
            F.count(F.when(kind == "send", 1)).alias("sends"),
            F.count(F.when(kind == "deliver", 1)).alias("deliveries"),
        )
    )


def spans(events: DataFrame) -> DataFrame:
    """From when to when each process's log goes, by its own clock.

    in: run, process, time_us
    out: run, process, first_us, last_us (null if no row has a time)
    """
    ends = F.min("time_us").alias("first_us"), F.max("time_us").alias("last_us")
    return events.groupBy(*_PLACE).agg(*ends)


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
            *_PLACE,
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


def _marks(found: DataFrame) -> DataFrame:
    """The arrival and the delivery of each message, and how many are held once it is over.

    in: `journeys`
    out: run, process, class, depth; on arrivals copies, control_bytes, waiting_since (the time, if
    it is still held at the end); on deliveries delivered, latency_us, held_us, bytes
    """
    arrives, received, delivered = (F.col(name) for name in ("arrives", "received", "delivered"))
    foreign = F.col("process") != F.col("origin")
    in_order = (
        Window.partitionBy(*_CLASS)
        .orderBy("position")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        found.repartition(*_PLACE)
        .withColumn("held_us", F.when(delivered > received, _since("received_us")))
        .withColumn("held", _held())
        .withColumn("arrives", F.explode(F.array(F.lit(True), F.lit(False))))
        .withColumn("position", F.when(arrives, received).otherwise(delivered))
        .where(F.col("position").isNotNull())
        .select(
            *_CLASS,
            F.sum(F.when(arrives, F.col("held")).otherwise(-F.col("held")))
            .over(in_order)
            .alias("depth"),
            *(F.when(arrives, F.col(name)).alias(name) for name in ("copies", "control_bytes")),
            F.when(arrives & delivered.isNull() & (F.col("held") == 1), F.col("received_us")).alias(
                "waiting_since"
            ),
            *(F.when(~arrives, F.col(name)).alias(name) for name in ("delivered", "held_us")),
            F.when(~arrives & foreign, _since("sent_us")).alias("latency_us"),
            F.when(~arrives, F.col("bytes")).alias("bytes"),
        )
    )


def _since(name: str) -> Column:
    return F.try_subtract(F.col("delivered_us"), F.col(name))


def _held() -> Column:
    """1 or 0. What is delivered in the moment in which it arrives is not held at any time; what is
    never delivered, though it might be addressed, is held to the end."""
    received, delivered = F.col("received"), F.col("delivered")
    waits = (
        F.when(received.isNull(), False)
        .when(delivered.isNull(), F.coalesce(F.col("addressed"), F.lit(True)))
        .when(delivered > received, F.coalesce(F.col("held_us") != 0, F.lit(True)))
        .otherwise(False)
    )
    return waits.cast("int")


def _sound(name: str) -> Column:
    return F.when(F.col(name) >= 0, F.col(name))


def _measured(name: str) -> tuple[Column, Column]:
    """One pass for all quantiles, and the maximum."""
    values = _sound(f"{name}_us")
    quantiles = F.percentile_approx(values, list(_QUANTILES.values()), ACCURACY)
    return quantiles.alias(name), F.max(values).alias(f"{name}_max_us")


def _spread(name: str) -> list[Column]:
    found = [F.col(name)[i].alias(f"{name}_{word}_us") for i, word in enumerate(_QUANTILES)]
    return [*found, F.col(f"{name}_max_us")]


def _each(name: str) -> Column:
    return F.try_divide(F.col(name), F.col("deliveries")).alias(name)


def _depth_mean() -> Column:
    """How long messages were held, all together, over how long the log goes."""
    still = F.col("waiting") * F.col("last_us").cast("decimal(20)") - F.col("since")
    held = F.coalesce("held_us", F.lit(0)) + F.coalesce(still, F.lit(0))
    return F.try_divide(held.cast("double"), F.try_subtract("last_us", "first_us"))
