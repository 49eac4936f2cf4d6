"""Records of all files into events: what `trace/importers/store.py` does on one machine's disk,
with joins that Spark spreads over many.

Names of processes come to the driver, as they do in the manifests; nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ordercast.errors import UsageError
from ordercast.trace.importers.base import Report, Where, natural
from ordercast.trace.importers.store import LAST, NOBODY, NOBODY_NOTE

__all__ = ["Joined", "join_records"]

_MESSAGE = ("run", "message")
_SHOWN = 5


class Joined(NamedTuple):
    events: DataFrame
    """`trace.parquet.arrow_schema`."""
    messages: DataFrame
    """run, origin, number, id; and new: has it a number that its log does not have?"""
    kept: DataFrame
    """To be unpersisted."""


def join_records(records: DataFrame, report: Report, *, crashed: Sequence[str], to: str) -> Joined:
    """in: `parsing.RECORDS`, with `seq` in the order of all files; asked for several times"""
    records = records.withColumn("place", F.coalesce("place", "seq"))
    records = _without_second_sends(records, report)
    sends = records.where(F.col("kind") == "send")
    arrivals = records.where(F.col("kind").isin("receive", "deliver"))
    orphans = arrivals.join(sends.select(*_MESSAGE), [*_MESSAGE], "left_anti")
    _tell_orphans(orphans, report)
    messages = _numbered(sends, orphans).persist()
    names = _names(records, messages, report)
    records = _with_crashes(records, names, crashed)
    indices = records.sparkSession.createDataFrame(
        [(run, dict(_indexed(those))) for run, those in report.processes.items()],
        "run string, indices map<string, int>",
    )
    return Joined(
        _events(records, messages, arrivals, F.broadcast(indices), to),
        messages.join(F.broadcast(indices), "run").select(
            "run",
            F.col("indices")[F.col("origin")].alias("origin"),
            "number",
            F.col("message").alias("id"),
            F.col("own").isNull().alias("new"),
        ),
        messages,
    )


def _indexed(names: Iterable[str]) -> Iterable[tuple[str, int]]:
    return ((name, index) for index, name in enumerate(names))


def _without_second_sends(records: DataFrame, report: Report) -> DataFrame:
    """The first send of a message is the one that counts."""
    is_send = F.col("kind") == "send"
    nth = F.row_number().over(Window.partitionBy(*_MESSAGE).orderBy("seq"))
    sends = records.where(is_send).withColumn("nth", nth)
    again = sends.where(F.col("nth") > 1)
    count = again.count()
    for row in again.orderBy("seq").take(_SHOWN) if count else ():
        report.unusable(
            Where(row["file"], row["line"]), f"{row['message']!r} is sent a second time"
        )
        count -= 1
    report.bad += count
    return records.where(~is_send).union(sends.where(F.col("nth") == 1).drop("nth"))


def _tell_orphans(orphans: DataFrame, report: Report) -> None:
    unknown = orphans.where(F.col("origin").isNull()).select("run").distinct().collect()
    for row in unknown:
        report.incomplete.add(row["run"])
        report.note(NOBODY_NOTE)


def _numbered(sends: DataFrame, orphans: DataFrame) -> DataFrame:
    """out: run, message, origin (a name), own (the log's number, or null), number"""
    in_order = Window.partitionBy("run", "process").orderBy("place", "seq")
    sent = sends.select(
        *_MESSAGE,
        F.col("process").alias("origin"),
        F.col("number").alias("own"),
        F.coalesce("number", F.row_number().over(in_order)).alias("number"),
    )
    highest = sent.groupBy("run", "origin").agg(F.max("number").alias("highest"))
    whose = F.coalesce("origin", F.lit(NOBODY))
    first = F.struct(whose == NOBODY, F.col("seq"))
    lost = orphans.groupBy(*_MESSAGE).agg(
        F.min_by(whose, first).alias("origin"),
        F.min("number").alias("own"),
        F.min("seq").alias("seq"),
    )
    nth = F.row_number().over(Window.partitionBy("run", "origin").orderBy("seq"))
    # Behind those of the same origin that are known to be sent.
    behind = lost.withColumn("nth", nth).join(highest, ["run", "origin"], "left")
    number = F.coalesce("own", F.col("nth") + F.coalesce("highest", F.lit(0)))
    found = behind.select(*_MESSAGE, "origin", "own", number.alias("number"))
    return sent.union(found)


def _names(records: DataFrame, messages: DataFrame, report: Report) -> dict[str, set[str]]:
    """The names of each run, which the report gets in index order; and who has no log."""

    def mentioned(frame: DataFrame, name: Column, *, logged: bool) -> DataFrame:
        return frame.select("run", name.alias("name"), F.lit(logged).alias("logged"))

    found = mentioned(records, F.col("process"), logged=True)
    for frame, name in (
        (records, F.col("origin")),
        (records, F.explode("destinations")),
        (messages, F.col("origin")),
    ):
        found = found.union(mentioned(frame, name, logged=False))
    known = found.where(F.col("name").isNotNull()).groupBy("run", "name").agg(F.max("logged"))
    runs: dict[str, dict[str, bool]] = {}
    for run, name, logged in known.collect():
        runs.setdefault(run, {})[name] = logged
    for run, names in sorted(runs.items()):
        ordered = sorted(names, key=lambda name: (name == NOBODY, natural(name)))
        report.processes[run] = ordered
        silent = [name for name in ordered if not names[name]]
        if silent:
            report.incomplete.add(run)
            report.note(f"there is no log of {', '.join(silent)}")
    return {run: set(names) for run, names in runs.items()}


def _with_crashes(
    records: DataFrame, names: dict[str, set[str]], crashed: Sequence[str]
) -> DataFrame:
    """And the ends that the user tells of."""
    rows = [(run, name) for name in crashed for run, those in names.items() if name in those]
    for name in crashed:
        if not any(name in those for those in names.values()):
            raise UsageError(f"--crashed {name}: there is no process of that name")
    if not rows:
        return records
    ends = records.sparkSession.createDataFrame(rows, "run string, process string").select(
        "*", F.lit("crash").alias("kind"), *(F.lit(LAST).alias(name) for name in ("place", "seq"))
    )
    return records.unionByName(ends, allowMissingColumns=True)


def _events(
    records: DataFrame, messages: DataFrame, arrivals: DataFrame, indices: DataFrame, to: str
) -> DataFrame:
    """in: indices: run, indices (map from name to index)"""
    receivers = arrivals.groupBy(*_MESSAGE).agg(F.collect_set("process").alias("receivers"))
    about = messages.select(*_MESSAGE, F.col("origin").alias("by"), F.col("number").alias("nth"))
    joined = records.join(about, [*_MESSAGE], "left").join(receivers, [*_MESSAGE], "left")
    in_order = Window.partitionBy("run", "process").orderBy("place", "seq")
    place = F.row_number().over(in_order) - 1
    placed = joined.withColumn("position", place).join(indices, "run")

    def index(name: Column) -> Column:
        return F.col("indices")[name]

    return placed.select(
        "run",
        index(F.col("process")).alias("process"),
        F.col("position").cast("long"),
        "kind",
        index(F.col("by")).alias("origin"),
        F.col("nth").cast("long").alias("number"),
        F.when(F.col("kind") == "send", _addressees(index, to)).alias("destinations"),
        "time_us",
        "bytes",
        F.lit(None).cast("int").alias("control_bytes"),
    )


def _addressees(index: Callable[[Column], Column], to: str) -> Column:
    given = F.col("destinations")
    if to == "receivers":
        got = F.coalesce("receivers", F.array().cast("array<string>"))
        return F.array_sort(F.transform(F.coalesce(given, got), index))
    others: Column = F.lit(None).cast("array<int>")
    if to == "others":
        others = F.array_remove(F.map_values("indices"), index(F.col("process")))
    told = F.array_sort(F.transform(given, index))
    return F.coalesce(told, F.array_sort(others))
