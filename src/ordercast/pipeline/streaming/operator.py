"""The operator as a plan: pack, and order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ordercast.errors import UsageError
from ordercast.pipeline.streaming.buckets import bucket_ids, buckets_for
from ordercast.pipeline.streaming.chunks import BUCKET, CHUNKS, pack
from ordercast.pipeline.streaming.form import Form, form_of
from ordercast.pipeline.streaming.processor import CausalProcessor, output_of
from ordercast.pipeline.streaming.progress import METRICS, observation
from ordercast.pipeline.streaming.settings import require_protobuf, require_rocksdb

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "causal_order",
    "fifo_order",
    "form_for",
    "in_order",
    "milliseconds",
    "sequence_order",
]

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def causal_order(
    df: DataFrame,
    *,
    group: str | Sequence[str],
    origin: str = "origin",
    number: str = "number",
    stamp: str | None = None,
    dependencies: str | None = None,
    wait: str | None = None,
    policy: str = "keep",
    buckets: int | None = None,
    start: int = 1,
    origins: Sequence[int | str] | None = None,
) -> DataFrame:
    """The messages of a stream, each once, in causal order within its group.

    in: any columns, among them those named here; out: the same, and `form.ADDED`: the position in
    the group, the outcome, and why, if it is not `released`.

    `stamp` (by default the column of that name) tells how many messages of each origin came before:
    an array, whose places are origins, or a map. `dependencies` tells them by their ids instead. A
    message is also after the one before it of its own origin. What waits longer than `wait`, such
    as 30s, is released or set aside by `policy`. `start` is the first number of each origin.
    Groups share `buckets`, by default one for each shuffle partition, and 16 at most.
    """
    if stamp is None and dependencies is None:
        stamp = "stamp"
    form = form_for(
        df, group=group, origin=origin, number=number, stamp=stamp, dependencies=dependencies,
        wait=wait, policy=policy, buckets=buckets, start=start, origins=origins,
    )  # fmt: skip
    return in_order(df, form)


def fifo_order(
    df: DataFrame,
    *,
    group: str | Sequence[str],
    origin: str = "origin",
    number: str = "number",
    wait: str | None = None,
    policy: str = "keep",
    buckets: int | None = None,
    start: int = 1,
    origins: Sequence[int | str] | None = None,
) -> DataFrame:
    """The messages of each origin in the order of their numbers: `causal_order` without stamps."""
    form = form_for(
        df, group=group, origin=origin, number=number, stamp=None, dependencies=None,
        wait=wait, policy=policy, buckets=buckets, start=start, origins=origins,
    )  # fmt: skip
    return in_order(df, form)


def sequence_order(
    df: DataFrame,
    *,
    group: str | Sequence[str],
    sequence: str = "sequence",
    wait: str | None = None,
    policy: str = "keep",
    buckets: int | None = None,
    start: int = 1,
) -> DataFrame:
    """The messages of each group in the order of one sequence: total order."""
    form = form_for(
        df, group=group, origin=None, number=sequence, stamp=None, dependencies=None,
        wait=wait, policy=policy, buckets=buckets, start=start, origins=None,
    )  # fmt: skip
    return in_order(df, form)


def milliseconds(wait: str) -> int:
    """Of a duration such as 500ms, 30s, 5m, 2h or 1d."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", wait.strip())
    if match is None:
        raise UsageError(f"{wait!r} is not a duration such as 500ms, 30s, 5m, 2h or 1d")
    return round(float(match[1]) * _UNITS[match[2]])


def form_for(
    df: DataFrame, *, group: str | Sequence[str], wait: str | None, origins: Any,
    buckets: int | None, **columns: Any,
) -> Form:  # fmt: skip
    """Of this stream: what its columns say, and what to do when."""
    return form_of(
        df.schema,
        group=group if isinstance(group, str) else tuple(group),
        origins=None if origins is None else tuple(origins),
        wait_ms=None if wait is None else milliseconds(wait),
        buckets=buckets_for(df.sparkSession) if buckets is None else buckets,
        **columns,
    )


def in_order(df: DataFrame, form: Form) -> DataFrame:
    """What each of the orders comes to."""
    if not df.isStreaming:
        raise UsageError(
            "this DataFrame is no stream: read it with spark.readStream, with the trigger "
            "availableNow if it is to end"
        )
    require_protobuf()
    require_rocksdb(df.sparkSession)
    return _plan(df, form)


def _plan(df: DataFrame, form: Form) -> DataFrame:
    # Nothing in here may differ from batch to batch: Spark would compile it anew for each. And its
    # hash is the same in every process and every version.
    ids = bucket_ids(form.buckets)
    bucket = F.get(F.lit(ids), F.pmod(F.xxhash64(*form.group), F.lit(form.buckets)).cast("int"))
    chunks = df.withColumn(BUCKET, bucket).mapInArrow(pack, CHUNKS)
    ordered = chunks.groupBy("bucket").transformWithStateInPandas(
        statefulProcessor=CausalProcessor(form),
        outputStructType=output_of(df.schema),
        outputMode="Append",
        timeMode="ProcessingTime" if form.expires else "None",
    )
    return ordered.observe(METRICS, observation()).where(F.col("outcome").isNotNull())
