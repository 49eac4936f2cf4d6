"""How far Spark is with what it does now, for a person who waits."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Tell", "followed"]

Tell = Callable[[int, int], None]
"""Told how many tasks of the stages that are running are done, and how many there are."""

LOOK_S = 0.5


@contextmanager
def followed(spark: SparkSession, tell: Tell | None) -> Iterator[None]:
    """While the block lasts, `tell` is called whenever there is news, from a thread of its own."""
    if tell is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(spark, tell, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _follow(spark: SparkSession, tell: Tell, over: threading.Event) -> None:
    known: tuple[int, int] | None = None
    with suppress(Exception):  # Spark has gone: whoever waits for a job hears of it
        tracker = spark.sparkContext.statusTracker()
        while not over.wait(LOOK_S):
            found = map(tracker.getStageInfo, tracker.getActiveStageIds())
            stages = [stage for stage in found if stage is not None]
            now = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
            if now[1] and now != known:
                known = now
                tell(*now)
