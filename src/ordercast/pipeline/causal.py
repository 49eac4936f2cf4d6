"""Causal order: no process delivers a message before one that happened before it.

A fact is a first delivery of a message that is known and addressed to the process, as for FIFO.
Messages may be addressed to subsets, so a predecessor may be known only through messages that the
process itself never gets: that takes vector clocks (`clocks`), not just direct dependencies.

One run is one task here, which must hold that run's send and deliver rows in memory. Many runs
spread over many tasks; one huge run does not, as yet.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ordercast.pipeline.facts import addressed
from ordercast.pipeline.findings import WITNESS

__all__ = ["causal"]

_SPARK = f"run string, checked bigint, violations bigint, doubts bigint, witness {WITNESS}"
_ARROW = pa.schema(
    {
        "run": pa.string(),
        "checked": pa.int64(),
        "violations": pa.int64(),
        "doubts": pa.int64(),
        "witness": pa.struct(
            {
                "process": pa.int32(),
                "position": pa.int64(),
                "origin": pa.int32(),
                "number": pa.int64(),
                "other": pa.int32(),
                "later": pa.int64(),
                "link": pa.string(),
                "missing": pa.bool_(),
            }
        ),
    }
)


def causal(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """in: `facts.message_rows`
    out: `findings.summed`
    """
    known = rows.join(F.broadcast(runs.select("run", "members", "complete")), "run").select(
        "run", "process", "position", "origin", "number", addressed().alias("addressed"), "complete"
    )
    found = known.groupBy("run").applyInArrow(_check, _SPARK)
    return found.withColumn("property", F.lit("causal"))


def _check(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
    from ordercast.pipeline.causal_run import check_run

    (run,) = key
    found = check_run(table, complete=table.column("complete")[0].as_py())
    return pa.Table.from_pylist([{"run": run.as_py(), **found}], _ARROW)
