"""The wiring: events and runs in, verdicts out.

First everything is counted, as one query. Only where a count shows that something is wrong, and the
count does not say where, a second query looks for the witness.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from ordercast.pipeline.agreement import agreement, uniform_agreement
from ordercast.pipeline.causal import causal
from ordercast.pipeline.facts import message_rows, messages, pairs
from ordercast.pipeline.fifo import fifo, predecessor
from ordercast.pipeline.findings import summed
from ordercast.pipeline.no_creation import no_creation
from ordercast.pipeline.no_duplication import no_duplication, second_delivery
from ordercast.pipeline.sentences import JUDGED, Seen, sentence
from ordercast.pipeline.validity import validity
from ordercast.trace.verdicts import Outcome, Verdict, Witness

__all__ = ["findings", "judged", "verify"]

_PER_MESSAGE = ("no_duplication", "no_creation", "validity", "agreement", "uniform_agreement")

Found = dict[str, Any]


def findings(events: DataFrame, runs: DataFrame) -> DataFrame:
    """What was counted. One row per run with messages, and property.

    in: events: `trace.parquet.arrow_schema`; runs: see `facts`
    out: `findings.summed`
    """
    rows = message_rows(events)
    met = pairs(rows, runs)
    per_message = (
        messages(met)
        .transform(no_duplication)
        .transform(no_creation)
        .transform(validity)
        .transform(agreement)
        .transform(uniform_agreement)
    )
    tables = [summed(per_message, *_PER_MESSAGE), fifo(met), causal(rows, runs)]
    return reduce(DataFrame.unionByName, tables)


def judged(spark: SparkSession, events: DataFrame, runs: DataFrame) -> list[Verdict]:
    """Every run's verdicts, by run and then in the order of `JUDGED`."""
    found = {(row["run"], row["property"]): _plain(row) for row in findings(events, runs).collect()}
    about = {row["run"]: row for row in runs.collect()}
    rows = message_rows(events)
    if repeated := _witnesses(found, "no_duplication"):
        _add_second_deliveries(spark, rows, repeated)
    if broken := _witnesses(found, "fifo"):
        for run, seen in broken.items():
            proof = found[run, "fifo"]["violations"] > 0 and not about[run]["complete"]
            seen.update(origin=seen["other"], link="sent", inversion=proof)
        _add_predecessors(spark, pairs(rows, runs), broken)
    nothing: Found = {"checked": 0, "violations": 0, "doubts": 0, "witness": None}
    return [
        _verdict(about[run], name, found.get((run, name), nothing))
        for run in sorted(about)
        for name in JUDGED
    ]


def verify(spark: SparkSession, events: DataFrame, runs: DataFrame) -> DataFrame:
    """The verdicts as a table.

    in: events: `trace.parquet.arrow_schema`; runs: see `facts`
    out: run, property, verdict, checked, violations, witness (process, messages, sentence; or null)
    """
    rows = [msgspec.to_builtins(verdict) for verdict in judged(spark, events, runs)]
    return spark.createDataFrame(pa.Table.from_pylist(rows, _VERDICTS))


def _plain(row: Row) -> Found:
    return row.asDict(recursive=True)


def _add_second_deliveries(
    spark: SparkSession, rows: DataFrame, repeated: dict[str, Found]
) -> None:
    for row in second_delivery(rows, _table(spark, repeated, _REPEATED)).collect():
        repeated[row["run"]].update(_plain(row))


def _add_predecessors(spark: SparkSession, met: DataFrame, broken: dict[str, Found]) -> None:
    for row in predecessor(met, _table(spark, broken, _BROKEN)).collect():
        broken[row["run"]].update(_plain(row))


def _witnesses(found: dict[tuple[str, str], Found], name: str) -> dict[str, Found]:
    return {
        run: row["witness"]
        for (run, property_name), row in found.items()
        if property_name == name and row["witness"] is not None
    }


def _table(spark: SparkSession, witnesses: dict[str, Found], schema: pa.Schema) -> DataFrame:
    rows = [{**seen, "run": run} for run, seen in sorted(witnesses.items())]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def _verdict(run: Row, name: str, found: Found) -> Verdict:
    outcome: Outcome = "holds"
    if found["violations"]:
        outcome = "violated"
    elif found["doubts"]:
        outcome = "unknown"
    witness = None
    if found["witness"] is not None:
        fields = {key: value for key, value in found["witness"].items() if key in _SEEN}
        seen = Seen(
            names=run["names"],
            unknown=outcome == "unknown",
            complete=run["complete"],
            **fields,
        )
        witness = Witness(seen.process, seen.messages, sentence(name, seen))
    return Verdict(run["run"], name, outcome, found["checked"], found["violations"], witness)


_SEEN = frozenset(Seen.__slots__)
_REPEATED = pa.schema({"run": pa.string(), "process": pa.int32(), "position": pa.int64()})
_BROKEN = pa.schema(
    {
        "run": pa.string(),
        "process": pa.int32(),
        "origin": pa.int32(),
        "position": pa.int64(),
        "inversion": pa.bool_(),
    }
)
_VERDICTS = pa.schema(
    {
        "run": pa.string(),
        "property": pa.string(),
        "verdict": pa.string(),
        "checked": pa.int64(),
        "violations": pa.int64(),
        "witness": pa.struct(
            {
                "process": pa.int32(),
                "messages": pa.list_(pa.string()),
                "sentence": pa.string(),
            }
        ),
    }
)
