"""A run that cannot be split is one task's work, if that has the memory for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.shipping import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["GATHER", "check_room"]

GATHER = "spark.ordercast.gather"
"""The setting that says how many GiB one task may take to judge a run whole."""
_CLUSTER_GIB = 4.0
EVENT_BYTES = 140
"""What judging a run whole takes, about, for each event."""


def check_room(spark: SparkSession, run: str, events: int, reason: Unhealthy) -> None:
    """One sentence instead of a worker that runs out of memory."""
    needed, allowed = events * EVENT_BYTES / 2**30, _allowed_gib(spark)
    if needed > allowed:
        raise TraceError(
            f"run {run!r} {reason.why}, so it cannot be split; judging it whole takes about "
            f"{needed:.1f} GiB in one task, and {allowed:.1f} GiB are allowed: judge a part of it, "
            f"or allow more with --conf {GATHER}=GIB"
        )


def _allowed_gib(spark: SparkSession) -> float:
    """What the setting says; without it half of this machine, if tasks run here."""
    told = spark.conf.get(GATHER, None)
    if told is not None:
        try:
            return float(told)
        except ValueError:
            raise UsageError(f"{GATHER} must be a number of GiB, not {told!r}") from None
    if not is_local(spark.sparkContext.master or ""):
        return _CLUSTER_GIB
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**31
