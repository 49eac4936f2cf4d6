"""Spans that are exported again: what `Store._forget_repeated` does on one machine's disk."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ordercast.trace.importers.base import PLACES_SHOWN, Report, Where
from ordercast.trace.importers.store import told_again, told_otherwise

__all__ = ["told_once"]


def told_once(records: DataFrame, report: Report) -> DataFrame:
    """in and out: `task.RECORDS`, all of which have a span. What is told of one first counts."""
    first = F.first("content").over(Window.partitionBy("run", "span").orderBy("seq"))
    again = Window.partitionBy("run", "span", "content", "link").orderBy("seq")
    marked = records.select(
        "*",
        (F.col("content") != first).alias("otherwise"),
        (F.row_number().over(again) > 1).alias("repeated"),
    )
    is_first = F.col("link") == 0
    counts = marked.where(is_first).agg(
        F.count_if("otherwise").alias("otherwise"),
        F.count_if(F.col("repeated") & ~F.col("otherwise")).alias("repeated"),
    )
    [found] = counts.collect()
    if found["otherwise"]:
        others = marked.where(is_first & F.col("otherwise"))
        _tell_others(others, found["otherwise"], report)
    if found["repeated"]:
        report.note(told_again(found["repeated"]))
    if not found["otherwise"] and not found["repeated"]:
        return records
    return marked.where(~F.col("otherwise") & ~F.col("repeated")).drop("otherwise", "repeated")


def _tell_others(others: DataFrame, count: int, report: Report) -> None:
    for row in others.orderBy("seq").take(PLACES_SHOWN):
        report.unusable(Where(row["file"], row["line"]), told_otherwise(row["span"]))
        count -= 1
    report.bad += count
