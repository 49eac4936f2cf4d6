"""Events and runs as somebody's DataFrames: what must be so before they can be judged.

Whatever is wrong is told in a sentence, and not by a worker that fails, nor by an empty table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.described import DESCRIBED
from ordercast.pipeline.rules import check_schema
from ordercast.trace.verdicts import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ordercast.pipeline.results import Results

__all__ = ["check_events", "check_runs", "refuse_flaws"]


def check_events(events: DataFrame) -> None:
    check_schema(_schema(events, "events"), "events")


def check_runs(runs: DataFrame, *, skip: bool) -> None:
    """With `skip`, promises that mean nothing are passed over."""
    schema = _schema(runs, "runs")
    if "run" not in schema.names:
        raise TraceError("runs: the column 'run' is missing")
    for field in DESCRIBED:
        if field.name not in schema.names:
            continue
        found = schema.field(field.name).type
        if not pa.types.is_null(found) and _family(found) != _family(field.type):
            raise TraceError(
                f"runs: the column {field.name!r} is of type {found}, not {_family(field.type)}"
            )
    if skip or "promises" not in schema.names:
        return
    promised = runs.select("run", F.explode("promises").alias("name"))
    strange = promised.where(~F.col("name").isin(*PROPERTIES)).orderBy("run", "name").first()
    if strange is not None:
        raise TraceError(
            f"runs: run {strange['run']!r} promises {strange['name']!r}, which is no property: "
            f"choose from {', '.join(PROPERTIES)}"
        )


def refuse_flaws(results: Results) -> None:
    """Raises a `TraceError` for the first row that cannot be used, if there is one."""
    flaw = results.table("flaws").orderBy("run", "flaw").first()
    if flaw is not None:
        whose = "" if flaw["run"] is None else f" of run {flaw['run']!r}"
        raise TraceError(
            f"events{whose}: {flaw['flaw']} (skip=True leaves out what cannot be used, and "
            "table('flaws') lists it)"
        )


def _schema(frame: Any, name: str) -> pa.Schema:
    try:
        return to_arrow_schema(frame.schema, timezone="UTC")
    except AttributeError:
        kind = f"{type(frame).__module__.partition('.')[0]} {type(frame).__name__}"
        raise UsageError(
            f"{name} is a {kind}, and no DataFrame of Spark: make one with spark.createDataFrame"
        ) from None


def _family(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"a list of {kind.value_type}s"
    return "an integer" if pa.types.is_integer(kind) else f"a {kind}"
