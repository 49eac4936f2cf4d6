"""The data pipeline on Spark: takes a trace of any size and says which orders held.

The only folder that imports pyspark, and only once something is judged: who never judges need not
have it. It rebuilds what happened from the events alone and shares no code with the protocols.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ordercast.errors import TraceError
from ordercast.pipeline.session import open_session, require_pyspark, session
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import (
    PROPERTIES,
    Judgement,
    Verdict,
    promised,
    properties_of_order,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ordercast.pipeline.engine import Options, Results
    from ordercast.pipeline.source import Source

__all__ = ["judge", "open_session", "session", "verify"]

_SMALL_BYTES = 4 << 20


def judge(
    path: Path,
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
    quiesced: bool = False,
    order: str | None = None,
    properties: Collection[str] = PROPERTIES,
    skip: bool = False,
    spark: SparkSession | None = None,
) -> Judgement:
    """The verdicts on a trace on disk, in `spark` or in a session of its own.

    `quiesced` says that runs without a manifest came to rest; `order` is what must hold, whatever
    the manifests promise; with `skip`, rows that cannot be used are counted and left out.
    """
    require_pyspark()
    from ordercast.pipeline.engine import Options
    from ordercast.pipeline.source import inspect

    # Mistakes that need no Spark to be seen are told before it starts.
    demanded = None if order is None else properties_of_order(order)
    source = inspect(path, skip=skip)
    options = Options(properties, quiesced, skip)
    if spark is not None:
        return _judge(spark, source, options, demanded)
    settings = _for_size(source.size) | dict(config or {})
    with session(master=master, config=settings, verbose=verbose) as opened:
        return _judge(opened, source, options, demanded)


def verify(
    spark: SparkSession,
    events: DataFrame,
    runs: DataFrame,
    *,
    properties: Collection[str] = PROPERTIES,
    skip: bool = False,
) -> Results:
    """The result tables of a trace in DataFrames: `verify(…).table("verdicts")`.

    in: events: `trace.parquet.arrow_schema`; runs, one row each: `judging.RUNS`. Runs that are not
    in `runs` are judged as runs without a manifest. Call `release` on what comes back when done.
    """
    from ordercast.pipeline.engine import Options, judge_frame

    return judge_frame(events, runs, Options(properties, False, skip))


def _judge(
    spark: SparkSession, source: Source, options: Options, demanded: tuple[str, ...] | None
) -> Judgement:
    from ordercast.pipeline.engine import judge_source

    results = judge_source(spark, source, options)
    try:
        flaws = results.collect("flaws")
        if len(flaws) and not options.skip:
            raise _refusal(source.path, flaws.to_pylist())
        if None in flaws.column("run").to_pylist() and not options.torn:
            # What was left out may belong to any run: none is known to be whole.
            return _judge(spark, source, replace(options, torn=True), demanded)
        verdicts = results.collect("verdicts").to_pylist()
        seen = results.collect("runs").to_pylist()
    finally:
        results.release()
    events = sum(row["events"] for row in seen)
    if not events and not len(flaws):
        raise TraceError(f"{source.path}: there is no event in it")
    rank = {name: index for index, name in enumerate(PROPERTIES)}
    verdicts.sort(key=lambda row: (row["run"], rank[row["property"]]))
    promises = {}
    for run in sorted(row["run"] for row in seen):
        manifest = source.manifests.get(run) or Manifest(run, ())
        wanted = promised(manifest, options.properties) if demanded is None else demanded
        promises[run] = tuple(name for name in options.properties if name in wanted)
    return Judgement(
        runs=len(promises),
        events=events,
        verdicts=msgspec.convert(verdicts, tuple[Verdict, ...]),
        promises=promises,
        skipped=tuple(sorted({_place(flaw) for flaw in flaws.to_pylist()})),
    )


def _refusal(path: Path, flaws: list[dict[str, object]]) -> TraceError:
    """The first flaw in a sentence; those of single rows before those of several."""
    first = min(flaws, key=lambda f: (f["file"] is None, f["file"] or "", f["row"] or 0, f["flaw"]))
    return TraceError(_place(first) if first["file"] else f"{path}: {first['flaw']}")


def _place(flaw: Mapping[str, object]) -> str:
    file, row = flaw["file"], flaw["row"]
    if file is None:
        return str(flaw["flaw"])
    word = "line" if str(file).endswith(".jsonl") else "row"
    where = f"{file}, {word} {row}" if row is not None else f"{file}"
    return f"{where}: {flaw['flaw']}"


def _for_size(size: int) -> dict[str, str]:
    """A short job is over before what the JVM's second compiler makes of it could pay off."""
    quick = size < _SMALL_BYTES
    return {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"} if quick else {}
