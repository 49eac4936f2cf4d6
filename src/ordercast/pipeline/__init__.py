"""The data pipeline on Spark: takes a trace of any size and says which orders held.

The only folder that imports pyspark, and only once something is judged: who never judges need not
have it. It rebuilds what happened from the events alone and shares no code with the protocols.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ordercast.pipeline.sentences import JUDGED
from ordercast.pipeline.session import open_session, require_pyspark, session
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import Judgement, promised, properties_of_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ordercast.pipeline.reader import Source

__all__ = ["JUDGED", "judge", "open_session", "session", "verify"]

_SMALL_BYTES = 4 << 20


def judge(
    path: Path,
    *,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    verbose: bool = False,
    quiesced: bool = False,
    order: str | None = None,
    spark: SparkSession | None = None,
) -> Judgement:
    """The verdicts on a trace on disk, in `spark` or in a session of its own.

    `quiesced` says that runs without a manifest came to rest; `order` is what must hold, whatever
    the manifests promise.
    """
    require_pyspark()
    from ordercast.pipeline.reader import inspect

    # Mistakes that need no Spark to be seen are told before it starts.
    demanded = None if order is None else properties_of_order(order)
    source = inspect(path)
    if spark is not None:
        return _judge(spark, source, quiesced=quiesced, demanded=demanded)
    settings = _for_size(source.size) | dict(config or {})
    with session(master=master, config=settings, verbose=verbose) as opened:
        return _judge(opened, source, quiesced=quiesced, demanded=demanded)


def verify(spark: SparkSession, events: DataFrame, runs: DataFrame) -> DataFrame:
    """The verdicts as a table; see `verdicts.verify`."""
    from ordercast.pipeline import verdicts

    return verdicts.verify(spark, events, runs)


def _judge(
    spark: SparkSession, source: Source, *, quiesced: bool, demanded: tuple[str, ...] | None
) -> Judgement:
    from ordercast.pipeline.reader import read_source
    from ordercast.pipeline.verdicts import judged

    log = read_source(spark, source, quiesced=quiesced)
    try:
        verdicts = tuple(judged(spark, log.events, log.runs))
    finally:
        log.release()
    promises = {}
    for run in sorted({verdict.run for verdict in verdicts}):
        manifest = source.manifests.get(run) or Manifest(run, ())
        wanted = promised(manifest, JUDGED) if demanded is None else demanded
        promises[run] = tuple(name for name in JUDGED if name in wanted)
    return Judgement(
        runs=len(promises), events=log.event_count, verdicts=verdicts, promises=promises
    )


def _for_size(size: int) -> dict[str, str]:
    """A short job is over before what the JVM's second compiler makes of it could pay off."""
    quick = size < _SMALL_BYTES
    return {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"} if quick else {}
