"""Records of all files into events: what `trace/importers/store.py` does on one machine's disk,
with joins that Spark spreads over many.

Names of processes come to the driver, as they do in the manifests; nothing else does. Everything
that must be known before the events can be made is asked for at once: a job for a small log costs
as much as one for a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F

from ordercast.errors import UsageError
from ordercast.trace.importers.base import Report, Where, natural
from ordercast.trace.importers.store import LAST, NOBODY, NOBODY_NOTE, TIED_NOTE

__all__ = ["Joined", "join_records", "named"]

_MESSAGE = ("run", "message")
_SHOWN = 5
_IS_SEND, _IS_ARRIVAL = "kind = 'send'", "kind IN ('receive', 'deliver')"


class Joined(NamedTuple):
    events: DataFrame
    """`trace.parquet.arrow_schema`."""
    ids: DataFrame
    """run, origin, number, id."""
    new_ids: int
    """How many messages have a number that their log does not have."""
    kept: DataFrame
    """To be unpersisted."""


def join_records(
    records: DataFrame,
    report: Report,
    *,
    crashed: Sequence[str],
    to: str,
    mentioned: DataFrame | None = None,
) -> Joined:
    """in: records: `task.RECORDS`, where `seq` may be of any type that has an order, and `place`
    is not null; asked for twice. mentioned: `named`, processes besides those that records name."""
    messages = _messages(records).persist()
    facts = _facts(records, messages, mentioned, by_position=report.by_position).collect()
    again = sum(fact["again"] for fact in facts)
    if again:
        _tell_second_sends(records, messages, again, report)
    names = _tell_names(facts, report)
    if any(fact["tied"] for fact in facts):
        report.note(TIED_NOTE)
    ends = _ends(names, crashed)
    indices = records.sparkSession.createDataFrame(
        [(run, dict(_indexed(those))) for run, those in report.processes.items()],
        "run string, indices map<string, int>",
    )
    return Joined(
        _events(_with_crashes(records, ends), messages, F.broadcast(indices), to),
        messages.join(F.broadcast(indices), "run").select(
            "run",
            F.col("indices")[F.col("origin")].alias("origin"),
            "number",
            F.col("message").alias("id"),
        ),
        sum(fact["new"] for fact in facts),
        messages,
    )


def _indexed(names: Iterable[str]) -> Iterable[tuple[str, int]]:
    return ((name, index) for index, name in enumerate(names))


def _messages(records: DataFrame) -> DataFrame:
    """out: run, message, origin (a name), own (the log's number, or null), number, receivers, sends
    (how many), sent (the seq of the first), nobody (did someone get it who does not know whose it
    is, and nobody sent it?)"""
    is_send, is_arrival = F.expr(_IS_SEND), F.expr(_IS_ARRIVAL)
    unknown = F.col("origin").isNull()
    found = (
        records.where(F.col("message").isNotNull())
        .groupBy(*_MESSAGE)
        .agg(
            F.count_if(is_send).alias("sends"),
            F.min(F.when(is_send, F.struct("seq", "place", "finer", "process", "number"))).alias(
                "send"
            ),
            F.collect_set(F.when(is_arrival, F.col("process"))).alias("receivers"),
            F.min(F.when(is_arrival, F.struct(unknown.alias("un"), "seq", "origin"))).alias("one"),
            F.min(F.when(is_arrival, F.col("number"))).alias("number"),
            F.min(F.when(is_arrival, F.col("seq"))).alias("seq"),
            F.coalesce(F.max(is_arrival & unknown), F.lit(False)).alias("unknown"),
        )
    )
    lost = F.col("sends") == 0
    named = F.coalesce("one.origin", F.lit(NOBODY))
    whose = found.select(
        *_MESSAGE,
        "receivers",
        "sends",
        lost.alias("lost"),
        (lost & F.col("unknown")).alias("nobody"),
        F.when(lost, named).otherwise(F.col("send.process")).alias("origin"),
        F.when(lost, F.col("number")).otherwise(F.col("send.number")).alias("own"),
        *("send.place", "send.finer"),
        F.col("send.seq").alias("sent"),
        F.when(lost, F.col("seq")).otherwise(F.col("send.seq")).alias("seq"),
    )
    return _numbered(whose)


def _numbered(whose: DataFrame) -> DataFrame:
    """Those that nobody is seen to send come behind those of the same origin that are sent."""
    in_order = Window.partitionBy("run", "origin").orderBy("lost", "place", "finer", "seq")
    nth, lost = F.row_number().over(in_order), F.col("lost")
    counted = whose.withColumn("nth", nth).withColumn(
        "number", F.when(~lost, F.coalesce("own", F.col("nth")))
    )
    highest = F.coalesce(F.max("number").over(in_order), F.lit(0))
    behind = F.col("nth") - F.count_if(~lost).over(in_order) + highest
    number = F.coalesce("number", "own", behind).cast("long")
    return counted.withColumn("number", number).select(
        *_MESSAGE, "origin", "own", "number", "receivers", "sends", "sent", "nobody"
    )


def named(frame: DataFrame, names: Column, *, logged: bool) -> DataFrame:
    """out: run, name, logged: who is named, and whether that means that there is a log of it

    in: names: an array"""
    return frame.select("run", F.explode(names).alias("name"), F.lit(logged).alias("logged"))


def _facts(
    records: DataFrame, messages: DataFrame, mentioned: DataFrame | None, *, by_position: bool
) -> DataFrame:
    """out: run, name, logged, tied (are two of its records at the same place?), nobody, new, again:
    the last three of messages of that origin"""
    none = F.array().cast("array<string>")
    others = F.concat(F.array("origin"), F.coalesce("destinations", none))
    people = named(records, F.array("process"), logged=True)
    people = people.union(named(records, others, logged=False))
    people = people if mentioned is None else people.union(mentioned)
    people = people.withColumn("tied", F.lit(False))
    people = people.union(_tied(records)) if by_position else people
    nothing = [F.lit(False).alias("nobody"), *(F.lit(0).alias(name) for name in ("new", "again"))]
    origins = messages.select(
        "run",
        F.col("origin").alias("name"),
        *(F.lit(False).alias(name) for name in ("logged", "tied")),
        "nobody",
        F.col("own").isNull().cast("int").alias("new"),
        F.greatest(F.col("sends") - 1, F.lit(0)).alias("again"),
    )
    found = people.select("*", *nothing).union(origins).where(F.col("name").isNotNull())
    return found.groupBy("run", "name").agg(
        *(F.max(name).alias(name) for name in ("logged", "tied", "nobody")),
        *(F.sum(name).alias(name) for name in ("new", "again")),
    )


def _tied(records: DataFrame) -> DataFrame:
    """out: run, name, logged, tied: who has several records at the same place"""
    places = records.groupBy("run", F.col("process").alias("name"), "place").count()
    yes = (F.lit(True).alias(name) for name in ("logged", "tied"))
    return places.where(F.col("count") > 1).select("run", "name", *yes)


def _tell_second_sends(records: DataFrame, messages: DataFrame, count: int, report: Report) -> None:
    """The first send of a message is the one that counts."""
    sends = records.where(_IS_SEND).join(messages.select(*_MESSAGE, "sent"), [*_MESSAGE])
    again = sends.where(F.col("seq") != F.col("sent"))
    for row in again.orderBy("seq").take(_SHOWN):
        report.unusable(
            Where(row["file"], row["line"]), f"{row['message']!r} is sent a second time"
        )
        count -= 1
    report.bad += count


def _tell_names(facts: Sequence[Row], report: Report) -> dict[str, set[str]]:
    """The names of each run, which the report gets in index order; and who has no log."""
    runs: dict[str, dict[str, bool]] = {}
    for fact in facts:
        names = runs.setdefault(fact["run"], {})
        names[fact["name"]] = names.get(fact["name"], False) or fact["logged"]
        if fact["nobody"]:
            names.setdefault(NOBODY, False)
            report.incomplete.add(fact["run"])
            report.note(NOBODY_NOTE)
    for run, names in sorted(runs.items()):
        ordered = sorted(names, key=lambda name: (name == NOBODY, natural(name)))
        report.processes[run] = ordered
        silent = [name for name in ordered if not names[name]]
        if silent:
            report.incomplete.add(run)
            report.note(f"there is no log of {', '.join(silent)}")
    return {run: set(names) for run, names in runs.items()}


def _ends(names: dict[str, set[str]], crashed: Sequence[str]) -> list[tuple[str, str]]:
    """Run and name of those that the user says have crashed."""
    for name in crashed:
        if not any(name in those for those in names.values()):
            raise UsageError(f"--crashed {name}: there is no process of that name")
    return [(run, name) for name in crashed for run, those in names.items() if name in those]


def _with_crashes(records: DataFrame, ends: Sequence[tuple[str, str]]) -> DataFrame:
    if not ends:
        return records
    rows = records.sparkSession.createDataFrame(ends, "run string, process string").select(
        "*", F.lit("crash").alias("kind"), F.lit(LAST).alias("place")
    )
    return records.unionByName(rows, allowMissingColumns=True)


def _events(records: DataFrame, messages: DataFrame, indices: DataFrame, to: str) -> DataFrame:
    """in: indices: run, indices (map from name to index)"""
    about = messages.select(
        *(*_MESSAGE, "sent", "receivers"),
        F.col("origin").alias("by"),
        F.col("number").alias("nth"),
    )
    joined = records.join(about, [*_MESSAGE], "left")
    first = joined.where((F.col("kind") != "send") | (F.col("seq") == F.col("sent")))
    in_order = Window.partitionBy("run", "process").orderBy("place", "finer", "seq")
    place = F.row_number().over(in_order) - 1
    placed = first.withColumn("position", place).join(indices, "run")

    def index(name: Column) -> Column:
        return F.col("indices")[name]

    return placed.select(
        "run",
        index(F.col("process")).alias("process"),
        F.col("position").cast("long"),
        "kind",
        index(F.col("by")).alias("origin"),
        F.col("nth").alias("number"),
        F.when(F.col("kind") == "send", _addressees(index, to)).alias("destinations"),
        "time_us",
        "bytes",
        F.lit(None).cast("int").alias("control_bytes"),
    )


def _addressees(index: Callable[[Column], Column], to: str) -> Column:
    given = F.col("destinations")
    if to == "receivers":
        return F.array_sort(F.transform(F.coalesce(given, F.col("receivers")), index))
    others: Column = F.lit(None).cast("array<int>")
    if to == "others":
        others = F.array_remove(F.map_values("indices"), index(F.col("process")))
    told = F.array_sort(F.transform(given, index))
    return F.coalesce(told, F.array_sort(others))
