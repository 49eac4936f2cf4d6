"""Events with vector clocks into records: what `trace/importers/inference.py` does on one machine,
event by event on many.

To say what an event was takes its clock, the one before it at its host, and the clocks of the
events that it newly knows of: a window and a join. So an execution may be larger than a machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ordercast.pipeline.reading.joining import named
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.importers.base import PLACES_SHOWN, Options, Report, Where
from ordercast.trace.importers.meaning import COUNTED, Words, meaning_of, tell
from ordercast.trace.importers.stamped import Stamped

__all__ = ["Understood", "understand"]

_EVENT = ("run", "host", "own")
_ORDER = ("host", "own", "seq")
_CLOCK = "map<string, bigint>"
_POINT = pa.struct({"host": pa.string(), "own": pa.int64()})
_SAID = pa.struct({"kind": pa.string(), "message": pa.string(), "origin": pa.string()})
MEANINGS = pa.schema(
    {
        "seq": pa.int64(),
        "run": pa.string(),
        "host": pa.string(),
        "own": pa.int64(),
        "time_us": pa.int64(),
        "file": pa.string(),
        "line": pa.int64(),
        "sends": pa.bool_(),
        "said": pa.list_(_SAID),
        "heard": pa.list_(_POINT),
        "silent": pa.bool_(),
        "holes": pa.bool_(),
        "late": pa.bool_(),
        "flaws": pa.list_(pa.string()),
    }
)
"""A `Meaning` for each event; `sends`: its own words say that it is a send."""


class Understood(NamedTuple):
    records: DataFrame
    """`task.RECORDS`; `seq` is a struct."""
    mentioned: DataFrame
    """`joining.named`: all that clocks know of."""
    kept: tuple[DataFrame, ...]
    """To be unpersisted."""


def understand(events: DataFrame, options: Options, report: Report) -> Understood:
    """in: `task.STAMPED`; asked for several times"""
    meanings = _meanings(_with_news(events), options).persist()
    heard = meanings.select("run", F.explode("heard").alias("point")).select("run", "point.*")
    heard = heard.distinct()
    _tell(meanings, heard, report)
    hosts = named(events, F.array("host"), logged=True)
    others = F.map_keys(F.from_json("clock", _CLOCK))
    records = _records(meanings, heard).persist()
    return Understood(
        records, hosts.union(named(events, others, logged=False)), (meanings, records)
    )


def _with_news(events: DataFrame) -> DataFrame:
    """out: the same, and last (the clock before it), news: the events that it newly knows of (host,
    own, clock, event), those that are missing left out"""
    before = Window.partitionBy("run", "host").orderBy("own", "seq")
    events = events.withColumn("last", F.lag("clock").over(before))
    clock, last = F.from_json("clock", _CLOCK), F.from_json("last", _CLOCK)
    newer = F.map_filter(
        clock,
        lambda host, own: (
            (host != F.col("host")) & (own > F.coalesce(F.try_element_at(last, host), F.lit(0)))
        ),
    )
    known = events.select("seq", "run", F.explode(newer).alias("host", "own"))
    first = F.min_by(F.struct("clock", "event"), "seq")
    firsts = events.groupBy(*_EVENT).agg(first.alias("found"))
    news = (
        known.join(firsts, [*_EVENT])
        .groupBy("seq")
        .agg(F.collect_list(F.struct("host", "own", "found.*")).alias("news"))
    )
    return events.join(news, "seq", "left")


def _meanings(events: DataFrame, options: Options) -> DataFrame:
    """in: `_with_news`; out: `MEANINGS`"""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keep_what_is_loaded()
        words = Words(options)
        for batch in batches:
            rows = [_understood(row, words) for row in batch.to_pylist()]
            yield from pa.Table.from_pylist(rows, MEANINGS).to_batches()

    return events.mapInArrow(run, spark_schema(MEANINGS))


def _understood(row: dict[str, Any], words: Words) -> dict[str, Any]:
    """in: a row of `_with_news`; out: a row of `MEANINGS`"""
    event = _stamped(row, row["run"])
    known = {(one["host"], one["own"]): _stamped(one, row["run"]) for one in row["news"] or ()}
    last = json.loads(row["last"]) if row["last"] else {}
    found = meaning_of(event, last, lambda *point: known.get(point), words)
    meaning = found._asdict() | {
        "said": [one._asdict() for one in found.said],
        "heard": [{"host": host, "own": own} for host, own in found.heard],
    }
    return row | meaning | {"sends": words.say(event.event)[0] == "send"}


def _stamped(row: dict[str, Any], run: str) -> Stamped:
    where = Where(row.get("file", ""), row.get("line", 0))
    clock = json.loads(row["clock"])
    return Stamped(run, row["host"], clock, row["event"], row.get("time_us"), where)


def _records(meanings: DataFrame, heard: DataFrame) -> DataFrame:
    """What events say that they were; and, behind them, the sends that only those tell of who heard
    them."""
    said = meanings.select("*", F.posexplode("said").alias("nth", "one"))
    first = Window.partitionBy(*_EVENT).orderBy("seq")
    numbered = meanings.withColumn("among", F.row_number().over(first))
    firsts = numbered.where("among = 1 AND NOT sends").drop("among")
    name = F.concat("host", F.lit(":"), F.col("own").cast("string"))
    send = F.struct(
        F.lit("send").alias("kind"),
        name.alias("message"),
        F.lit(None).cast("string").alias("origin"),
    )
    sent = firsts.join(heard, [*_EVENT], "left_semi")
    sent = sent.withColumns({"nth": F.lit(0), "one": send, "behind": F.lit(True)})
    both = said.withColumn("behind", F.lit(False)).unionByName(sent)
    is_send = (F.col("one.kind") == "send").cast("long")
    return both.select(
        F.struct("behind", *_ORDER, "nth").alias("seq"),
        "run",
        F.col("host").alias("process"),
        "one.kind",
        "file",
        "line",
        "one.message",
        (2 * F.col("own") + is_send).alias("place"),
        "one.origin",
        F.lit(None).cast("long").alias("number"),
        F.lit(None).cast("array<string>").alias("destinations"),
        "time_us",
        F.lit(None).cast("int").alias("bytes"),
        F.lit(0).cast("long").alias("finer"),
    )


def _tell(meanings: DataFrame, heard: DataFrame, report: Report) -> None:
    silent = meanings.where("silent").select(*_EVENT).distinct()
    unheard = silent.join(heard, [*_EVENT], "left_anti").groupBy("run")
    counts = meanings.groupBy("run").agg(
        F.count_if(F.size("heard") > 1).alias("several"),
        F.count_if("holes").alias("holes"),
        F.count_if("late").alias("late"),
        F.sum(F.size("flaws")).alias("flaws"),
    )
    rows = counts.join(unheard.agg(F.count("*").alias("silent")), "run", "left").fillna(0).collect()
    wrong = _first_flaws(meanings) if any(row["flaws"] for row in rows) else {}
    for row in sorted(rows, key=lambda row: row["run"]):
        run = row["run"]
        tell(report, run, {what: row[what] for what in COUNTED}, wrong.get(run, []))


def _first_flaws(meanings: DataFrame) -> dict[str, list[str]]:
    """Of each run, as many as are shown."""
    first = Window.partitionBy("run").orderBy(*_ORDER)
    flawed = meanings.where(F.size("flaws") > 0).withColumn("among", F.row_number().over(first))
    found: dict[str, list[str]] = {}
    for row in flawed.where(F.col("among") <= PLACES_SHOWN).orderBy("run", "among").collect():
        found.setdefault(row["run"], []).extend(row["flaws"])
    return found
