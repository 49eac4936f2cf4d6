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

from ordercast.pipeline.journeys import PLACE, journeys, spans

__all__ = ["ACCURACY", "COSTS", "THROUGHPUT", "costs", "throughput"]

ACCURACY = 10_000
BUCKETS_MOST = 316
"""The widths are powers of ten, so this is about a hundred: from 32 to 316 buckets a run."""

_CLASS = (*PLACE, "class")
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
        .join(spans(events), list(PLACE))
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
        .groupBy(*PLACE, "width_us", "bucket_us")
        .agg(
            F.count(F.when(kind == "send", 1)).alias("sends"),
            F.count(F.when(kind == "deliver", 1)).alias("deliveries"),
        )
    )


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
        found.repartition(*PLACE)
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
