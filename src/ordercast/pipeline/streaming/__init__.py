"""Streams: messages put in order as they come, each once; and traces judged while they grow.

    ordered = causal_order(messages, group="room", stamp="stamp", wait="30s", policy="release")

is a stream with the same columns, and `position`, `outcome` and `why`;

    register(spark)
    news = watch(spark.readStream.format("ordercast").load("trace/"))

is a stream of verdicts and figures: `verdict_rows(news)`, `status_rows(news)`.
"""

from __future__ import annotations

from ordercast.pipeline.streaming.checkpoint import (
    await_query,
    held,
    in_sentences,
    partitions_of,
    resumed,
)
from ordercast.pipeline.streaming.files import read_files, start
from ordercast.pipeline.streaming.form import patience
from ordercast.pipeline.streaming.operator import (
    causal_order,
    fifo_order,
    milliseconds,
    sequence_order,
)
from ordercast.pipeline.streaming.progress import Progress, Watcher, progress_table
from ordercast.pipeline.streaming.settings import LOCAL_CHECKPOINT, SESSION_SETTINGS, SETTINGS
from ordercast.pipeline.streaming.sink import DirectorySink
from ordercast.pipeline.streaming.source import register
from ordercast.pipeline.streaming.watch import watch
from ordercast.pipeline.streaming.watch_rows import flaw_rows, status_rows, verdict_rows

__all__ = [
    "LOCAL_CHECKPOINT",
    "SESSION_SETTINGS",
    "SETTINGS",
    "DirectorySink",
    "Progress",
    "Watcher",
    "await_query",
    "causal_order",
    "fifo_order",
    "flaw_rows",
    "held",
    "in_sentences",
    "milliseconds",
    "partitions_of",
    "patience",
    "progress_table",
    "read_files",
    "register",
    "resumed",
    "sequence_order",
    "start",
    "status_rows",
    "verdict_rows",
    "watch",
]
