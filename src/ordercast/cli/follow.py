"""`ordercast run --follow`: a watch on the members' logs while the group runs.

Spark takes seconds to start, so it starts beside the group; what was written before is read first.
The members' logs are removed at the end of a run, and not before the watch has read them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordercast.cli.spark import spark_settings
from ordercast.cli.steps import Steps
from ordercast.cli.words import counted
from ordercast.errors import OrdercastError
from ordercast.runtime.collect import manifest_of
from ordercast.runtime.plan import Plan, Progress
from ordercast.trace.directory import MANIFEST
from ordercast.trace.manifest import Manifest
from ordercast.trace.news import News, Said, Status
from ordercast.trace.span_log import SpanLog
from ordercast.trace.spans import Span, log_files, read_log
from ordercast.trace.verdicts import PROPERTIES, Judgement, Verdict, promised

if TYPE_CHECKING:
    from ordercast.pipeline.streaming.watch_query import Watching

__all__ = ["Follower", "following"]

_POLL_S = 0.1
_PATIENCE_S = 180
"""How long the end of a run waits for the watch to have read everything."""


@contextmanager
def following(
    options: argparse.Namespace, plan: Plan, directory: Path, progress: Steps
) -> Iterator[Follower]:
    """What can be refused is refused before any process starts."""
    config = spark_settings(options)
    from ordercast.pipeline.installed import require_pyspark

    require_pyspark()
    from ordercast.pipeline.streaming.settings import require_protobuf
    from ordercast.pipeline.streaming.watch_query import WATCH_SETTINGS

    require_protobuf()
    follower = Follower(plan, directory / "members", progress)
    follower.start(options, WATCH_SETTINGS | config)
    try:
        yield follower
    except KeyboardInterrupt:
        print("stopping Spark; Ctrl-C again ends it at once", file=sys.stderr)
        raise
    finally:
        follower.close()


class Follower:
    def __init__(self, plan: Plan, logs: Path, progress: Steps) -> None:
        self._plan = plan
        self._logs = logs
        self._progress = progress
        self._stack = ExitStack()
        self._news = threading.Condition()
        self._closing = threading.Event()
        self._watching: Watching | None = None
        self._trouble: BaseException | None = None
        self._status: Status | None = None
        self._violated: set[str] = set()
        self._promised = promised(self._about(), PROPERTIES)
        self._written = 0
        self.spark: Any = None
        """For whoever judges afterwards: it runs already."""

    def start(self, options: argparse.Namespace, config: dict[str, str]) -> None:
        self._progress.note("the watch: starting Spark beside the group")
        self._thread = threading.Thread(target=self._begin, args=(options, config), daemon=True)
        self._thread.start()

    def _begin(self, options: argparse.Namespace, config: dict[str, str]) -> None:
        from ordercast.pipeline.session import session
        from ordercast.pipeline.streaming.watch_query import Watching

        try:
            spark = self._stack.enter_context(
                session(master=options.master, config=config, verbose=options.verbose)
            )
            self.spark = spark
            while not log_files(self._logs):
                if self._closing.wait(_POLL_S):
                    return
            about = self._about()
            self._watching = self._stack.enter_context(
                Watching(spark, self._logs, self._hear, runs=[about])
            )
        except BaseException as error:
            self._trouble = error

    def _about(self) -> Manifest:
        """As far as it is known while the group runs."""
        return manifest_of(self._plan, quiesced=False, crashed=(), happened=())

    def see(self, now: Progress) -> None:
        """How far the members are."""
        self._written = now.sent + now.delivered

    def _hear(self, news: Iterable[News]) -> None:
        with self._news:
            for one in news:
                if isinstance(one, Said):
                    self._say(one.verdict)
                elif isinstance(one, Status):
                    self._status = one
                    lag = max(self._written - one.messages - one.deliveries, 0)
                    self._progress.note(
                        f"the watch: {counted(one.events, 'event')} judged, {lag} behind; "
                        f"order held so far: {one.order_held}"
                    )
            self._news.notify_all()

    def _say(self, verdict: Verdict) -> None:
        if verdict.verdict == "violated" and verdict.property not in self._violated:
            self._violated.add(verdict.property)
            words = "" if verdict.witness is None else f": {verdict.witness.sentence}"
            if verdict.property not in self._promised:
                words += " (not promised)"
            self._progress.note(f"the watch: {verdict.property} ✘ violated{words}")

    def finish(self, manifest: Manifest, crashed: Collection[int]) -> None:
        """The run is over: tell the watch so, and let it read the rest of the logs; of a run that
        was given up, it has read enough."""
        for process in sorted(crashed):
            name = f"p{process}"
            with SpanLog(self._logs, name, run=manifest.run, process=process) as log:
                log.write([Span("crash", time.time_ns() // 1000)])
        rows = sum(span.count for file in log_files(self._logs) for span in read_log(file)[1])
        (self._logs / MANIFEST).write_bytes(manifest.to_json() + b"\n")
        if not _given_up():
            self._progress.begin("the watch reads what is left")
            self._wait(rows, over=manifest.quiesced)
        if self._watching is not None:
            self._watching.stop()

    def _wait(self, rows: int, *, over: bool) -> None:
        end = time.monotonic() + _PATIENCE_S
        while not self._has_read(rows, over=over):
            if self._trouble is not None or time.monotonic() > end:
                return
            if self._watching is not None and self._ended(self._watching):
                return
            with self._news:
                self._news.wait(_POLL_S)

    def _has_read(self, rows: int, *, over: bool) -> bool:
        status = self._status
        return status is not None and status.events >= rows and (status.over or not over)

    def _ended(self, watching: Watching) -> bool:
        try:
            return watching.wait(0)
        except OrdercastError as error:
            self._trouble = error
            return True

    def compare(self, judgement: Judgement) -> str:
        """In a sentence: did the watch say what the judge says now?"""
        if self._trouble is not None:
            return f"The watch failed: {self._trouble}"
        if self._watching is None or self._status is None:
            return "The watch saw nothing of it."
        said = self._watching.standing.get(self._plan.run, {})
        differing = [
            f"{verdict.property} {said[verdict.property].verdict}"
            for verdict in judgement.verdicts
            if verdict.property in said and not self._agrees(said[verdict.property], verdict)
        ]
        if differing:
            return f"The watch said otherwise: {', '.join(differing)}."
        return f"The watch said the same of {counted(self._status.events, 'event')}."

    def _agrees(self, said: Verdict, judged: Verdict) -> bool:
        """Of a run that goes on, the watch can only say what was violated."""
        assert self._status is not None
        if self._status.over:
            one, other = ((v.verdict, v.checked, v.violations) for v in (said, judged))
            return one == other
        return said.verdict != "violated" or said.violations == judged.violations

    def close(self) -> None:
        """No query, no JVM, no temporary file is left."""
        self._closing.set()
        self._thread.join()
        self._stack.close()


def _given_up() -> bool:
    """Ctrl-C cancels the task that runs the group."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
