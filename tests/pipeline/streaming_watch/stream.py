"""A run fed to a watch in batches, by Spark's own tester of stateful processors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from ordercast.pipeline.blobs import unpack
from ordercast.pipeline.streaming.watch import Watch, pack_parts
from ordercast.pipeline.streaming.watch_memory import Memory
from ordercast.pipeline.streaming.watch_news import news_of
from ordercast.pipeline.streaming.watch_verdicts import Rules
from ordercast.trace.event import Event
from ordercast.trace.manifest import Manifest
from ordercast.trace.news import Flaw, News, Said, Status
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import Verdict


class Stream:
    def __init__(self, run: str = "r", **rules: Any) -> None:
        self.run = run
        self._tester = TwsTester(Watch(Rules(**rules), {}))
        self.standing: dict[str, dict[str, Verdict]] = {}
        self.news: list[News] = []

    def feed(self, events: Iterable[Event] = (), manifest: Manifest | None = None) -> Status | None:
        """One micro-batch. Returns how the run is doing, if that was said."""
        rows = to_table(events)
        table = rows.append_column("manifest", pa.nulls(len(rows), pa.string()))
        if manifest is not None:
            line = {"run": self.run, "manifest": manifest.to_json().decode()}
            schema = pa.schema([field.with_nullable(True) for field in table.schema])
            told = pa.Table.from_pylist([line], schema)
            table = pa.concat_tables([table.cast(schema), told])
        parts = [
            Row(**part)
            for batch in pack_parts(iter(table.to_batches()))
            for part in batch.to_pylist()
        ]
        said = self._tester.test(self.run, parts) if parts else []
        news = news_of([row.asDict(recursive=True) for row in said], self.standing)
        self.news += news
        return next((one for one in news if isinstance(one, Status)), None)

    @property
    def verdicts(self) -> dict[str, Verdict]:
        return self.standing.get(self.run, {})

    @property
    def violated(self) -> set[str]:
        return {name for name, one in self.verdicts.items() if one.verdict == "violated"}

    @property
    def flaws(self) -> list[str]:
        return [one.flaw for one in self.news if isinstance(one, Flaw)]

    def said(self, name: str) -> list[tuple[str, str]]:
        """What was said of a property: verdict and occasion."""
        told = [one for one in self.news if isinstance(one, Said) and one.verdict.property == name]
        return [(one.verdict.verdict, one.since) for one in told]

    @property
    def memory(self) -> Memory:
        stored = self._tester.peekValueState("memory", self.run)
        assert stored is not None
        return Memory.decode(bytes(stored[0]))

    @property
    def kept(self) -> list[tuple[int, int]]:
        """Process and position of every row in the state."""
        tables = [unpack(bytes(blob[0])) for blob in self._tester.peekListState("rows", self.run)]
        rows = (row for table in tables for row in table.to_pylist())
        return sorted((row["process"], row["position"]) for row in rows)


def batches(events: Sequence[Event], random: Random) -> list[list[Event]]:
    """Each process's events in its own order, all of them interleaved anyhow, cut anywhere; and
    within a batch in any order."""
    logs: dict[int, list[Event]] = {}
    for event in events:
        logs.setdefault(event.process, []).append(event)
    found: list[list[Event]] = [[]]
    while logs:
        log = logs[random.choice(sorted(logs))]
        size = random.randint(1, 4)
        found[-1] += log[:size]
        del log[:size]
        logs = {process: left for process, left in logs.items() if left}
        if random.random() < 0.4:
            found.append([])
    for batch in found:
        random.shuffle(batch)
    return found
