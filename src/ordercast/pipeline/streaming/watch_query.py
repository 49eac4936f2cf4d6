"""A watch on a directory as one object: it runs until it is stopped, fails in one sentence, and
leaves nothing behind."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ordercast.errors import TraceError
from ordercast.pipeline.streaming.checkpoint import in_one_sentence
from ordercast.pipeline.streaming.settings import SESSION_SETTINGS, require_protobuf
from ordercast.pipeline.streaming.source import MAX_BYTES, UNLIMITED, register
from ordercast.pipeline.streaming.watch import watch
from ordercast.pipeline.streaming.watch_memory import Memory
from ordercast.pipeline.streaming.watch_news import news_of
from ordercast.pipeline.streaming.watch_verdicts import Rules
from ordercast.trace.manifest import Manifest
from ordercast.trace.news import News, Status
from ordercast.trace.verdicts import PROPERTIES, Judgement, Verdict, promised

__all__ = ["WATCH_SETTINGS", "Watching"]

WATCH_SETTINGS = {
    **SESSION_SETTINGS,
    "spark.sql.shuffle.partitions": "2",  # a batch is small, and each partition has a state store
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stopTimeout": "10s",
}
"""What a session should have that is started for a watch."""
_SLOW_WORKER = "Python worker failed to connect back"
_TRIES = 5
"""On a busy machine Spark's workers may take longer to start than the ten seconds it gives them."""
_UNREADABLE = re.compile(r"ordercast\.errors\.TraceError: (.*)")


class Watching:
    """A query that runs from `start` until `stop`, or to its end."""

    def __init__(
        self,
        spark: SparkSession,
        source: Path | DataFrame,
        hear: Callable[[list[News]], None],
        *,
        runs: Collection[Manifest] = (),
        properties: Collection[str] = PROPERTIES,
        keep: int = Rules.keep,
        checkpoint: Path | None = None,
        quiesced: bool = False,
        once: bool = False,
        trigger_s: float = 1.0,
    ) -> None:
        """Of the logs or the trace in a directory, or of a stream in the trace schema. `hear` is
        told of all that is new, batch by batch, in a thread of its own. `once`: read what there is,
        as if nothing could follow, and end. Without a `checkpoint`, nothing is remembered for a
        next time."""
        require_protobuf()
        self._spark = spark
        self._hear = hear
        self._own = None if checkpoint else Path(tempfile.mkdtemp(prefix="ordercast-watch-"))
        self._checkpoint = checkpoint or self._own
        self._failure: BaseException | None = None
        self._tries = _TRIES
        self.standing: dict[str, dict[str, Verdict]] = {}
        """By run and property, the verdicts as of now."""
        self.promises: dict[str, tuple[str, ...]] = {}
        self.events: dict[str, int] = {}
        """By run, as is what was promised."""
        try:
            if checkpoint is not None:
                self._remember(checkpoint)
            events = self._followed(source, once=once) if isinstance(source, Path) else source
            watched = watch(
                events, runs=runs, properties=properties, keep=keep, ended=once, quiesced=quiesced
            )
            self._start = partial(self._started, watched, once=once, trigger_s=trigger_s)
            self._query = self._start()
        except BaseException:
            self._clean()
            raise

    def _followed(self, path: Path, *, once: bool) -> DataFrame:
        register(self._spark)
        reader = self._spark.readStream.format("ordercast").option("manifests", "true")
        reader = reader.option("ended", once)
        most_bytes = UNLIMITED if once else MAX_BYTES
        return reader.option("max_bytes_per_batch", most_bytes).load(str(path.absolute()))

    def _started(self, watched: DataFrame, *, once: bool, trigger_s: float) -> StreamingQuery:
        writer = watched.writeStream.outputMode("append").foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", str(self._checkpoint))
        if once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(trigger_s * 1000)} milliseconds").start()

    def _batch(self, frame: DataFrame, batch: int) -> None:
        rows = [row.asDict(recursive=True) for row in frame.collect()]
        try:
            news = news_of(rows, self.standing)
            for one in news:
                if isinstance(one, Status):
                    self.promises[one.run], self.events[one.run] = one.promised, one.events
            self._hear(news)
        except BaseException as error:
            self._failure = error
            raise

    def _remember(self, checkpoint: Path) -> None:
        """What was known of each run when the watch was last stopped."""
        if not any((checkpoint / "commits").glob("[0-9]*")):
            return
        reader = self._spark.read.format("statestore").option("stateVarName", "memory")
        for row in reader.load(str(checkpoint)).select("key", "value").collect():
            memory = Memory.decode(bytes(row["value"]["packed"]))
            run = row["key"][0]
            self.standing[run], self.events[run] = dict(memory.standing), memory.events
            self.promises[run] = promised(memory.described() or Manifest(run, ()), memory.standing)

    def wait(self, timeout_s: float) -> bool:
        """Is it over? Raises what it failed of."""
        end = time.monotonic() + timeout_s
        while self._query.isActive and time.monotonic() < end:
            time.sleep(min(0.1, timeout_s))  # not in the JVM: there, Ctrl-C would go unheard
        if self._query.isActive:
            return False
        if self._tries and _SLOW_WORKER in str(self._query.exception()):
            self._tries -= 1
            self._query = self._start()  # from its checkpoint: nothing is lost
            return False
        self._raise_failure()
        return True

    def judgement(
        self, demanded: Collection[str] | None = None, *, excused: Collection[str] = ()
    ) -> Judgement:
        """All verdicts as of now; `demanded` is what must hold, whatever was promised, and
        `excused` what of that need not be known."""
        promises = self.promises
        if demanded is not None:
            promises = {
                run: tuple(
                    name
                    for name, verdict in standing.items()
                    if name in demanded and (verdict.verdict != "unknown" or name not in excused)
                )
                for run, standing in self.standing.items()
            }
        verdicts = tuple(
            mine[name]
            for _, mine in sorted(self.standing.items())
            for name in PROPERTIES
            if name in mine
        )
        return Judgement(len(self.standing), sum(self.events.values()), verdicts, promises)

    def stop(self) -> None:
        """At once: what was not told yet will be the next time."""
        try:
            self._query.stop()
        finally:
            self._clean()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
        problem = self._query.exception()
        if problem is None:
            return
        if words := _UNREADABLE.findall(str(problem)):
            raise TraceError(words[-1].strip())
        raise in_one_sentence(problem)

    def _clean(self) -> None:
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
