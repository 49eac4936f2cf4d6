"""A live trace, judged while it grows: the same verdicts as the batch judge's, as soon as they are
certain.

Rows travel to their run in blobs and stay there as they came (`transformWithState`, RocksDB): one
packed value and a list of blobs per run. Each micro-batch judges what is kept of the run anew, with
the kernels of the batch judge, which takes less time than a micro-batch does by itself.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from ordercast.errors import UsageError
from ordercast.pipeline.rules import COLUMNS, flaws, typed
from ordercast.pipeline.streaming.watch_fold import Fold, Folded
from ordercast.pipeline.streaming.watch_log import kept_columns, pack_rows, unpack_rows
from ordercast.pipeline.streaming.watch_memory import Memory
from ordercast.pipeline.streaming.watch_rows import WATCHED, flaw_row, status_row, verdict_row
from ordercast.pipeline.streaming.watch_verdicts import Rules
from ordercast.pipeline.workers import keep_what_is_loaded
from ordercast.trace.manifest import Manifest
from ordercast.trace.verdicts import PROPERTIES, properties_named

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, TimerValues

__all__ = ["PARTS", "Watch", "pack_parts", "watch"]

PARTS = "run string, part string, payload binary"
_ARROW_PARTS = pa.schema({"run": pa.string(), "part": pa.string(), "payload": pa.binary()})
_EVENTS, _MANIFEST, _FLAW = "events", "manifest", "flaw"
_READ = (*COLUMNS, "time_us")
_NEEDED = ("run", "process", "position", "kind", "origin", "number")
_BLOB_ROWS = 1 << 17
_CHUNKS_MOST = 64
"""From so many on, blobs are put together."""


def watch(
    events: DataFrame,
    *,
    runs: Collection[Manifest] = (),
    properties: Collection[str] = PROPERTIES,
    keep: int = Rules.keep,
    ended: bool = False,
    quiesced: bool = False,
) -> DataFrame:
    """What there is to say about every run, while it goes on; see `watch_rows`.

    in: events: a stream in the trace schema (`trace.parquet.arrow_schema`), in any order of rows
    between processes; where a column `manifest` is not null, the row is none, but the line of the
    run's manifest. A line that says `quiesced` must be the last that comes of its run.

    `runs`: manifests that are known beforehand. `keep`: how many rows of a run may wait for what is
    still to come; beyond that, it is judged in windows. `ended`: the stream is all there is, in one
    batch; `quiesced`: and then, runs without a manifest had come to rest.
    """
    if lacking := [name for name in _NEEDED if name not in events.columns]:
        raise UsageError(
            f"the stream has no column {lacking[0]!r}, and a trace has {', '.join(_READ)}: its "
            f"columns are {', '.join(events.columns) or 'none'}"
        )
    rules = Rules(properties_named(properties), keep, ended=ended, quiesced=quiesced)
    lines = {manifest.run: manifest.to_json().decode() for manifest in runs}
    names = [name for name in (*_READ, "manifest") if name in events.columns]
    parts = events.select(*names).mapInArrow(pack_parts, PARTS)
    return parts.groupBy("run").transformWithState(Watch(rules, lines), WATCHED, "Append", "None")


def pack_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """out: run, part, payload: rows of one run as a blob, its manifest, or what is wrong with a
    row."""
    keep_what_is_loaded()
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _BLOB_ROWS:
            yield from _packed(pa.Table.from_batches(waiting))
            waiting = []
    if waiting:
        yield from _packed(pa.Table.from_batches(waiting))


def _packed(table: pa.Table) -> Iterator[pa.RecordBatch]:
    if "manifest" in table.column_names:
        told = table["manifest"].is_valid()
        lines = table.filter(told)
        for run, line in zip(lines["run"].to_pylist(), lines["manifest"].to_pylist(), strict=True):
            yield _part(run, _MANIFEST, line.encode())
        table = table.filter(pc.invert(told))
    bad = flaws(table) if len(table) else []
    for row, words in bad:
        yield _part(table["run"][row].as_py() or "", _FLAW, words.encode())
    sound = np.ones(len(table), np.bool_)
    sound[[row for row, _ in bad]] = False
    times = table["time_us"] if "time_us" in table.column_names else pa.nulls(len(table))
    rows = typed(table).append_column("time_us", times.cast(pa.int64()))
    rows = rows.filter(pa.array(sound))
    codes = rows["run"].combine_chunks()
    names = codes.dictionary.to_pylist() if len(rows) else []
    indices = codes.indices.to_numpy() if len(rows) else np.empty(0)
    for code, run in enumerate(names):
        mine = rows.filter(pa.array(indices == code)) if len(names) > 1 else rows
        if len(mine):
            yield _part(run, _EVENTS, pack_rows(kept_columns(mine)))


def _part(run: str, part: str, payload: bytes) -> pa.RecordBatch:
    columns = {"run": [run], "part": [part], "payload": [payload]}
    return pa.RecordBatch.from_pydict(columns, _ARROW_PARTS)


class Watch(StatefulProcessor):
    """in: run, part, payload; out: `WATCHED`"""

    def __init__(self, rules: Rules, manifests: Mapping[str, str]) -> None:
        self._rules = rules
        self._manifests = manifests

    def init(self, handle: StatefulProcessorHandle) -> None:
        keep_what_is_loaded()
        self._memory = handle.getValueState("memory", "packed binary")
        self._rows = handle.getListState("rows", "packed binary")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        [run] = key
        at = time.time()
        stored = self._memory.get()
        memory = Memory() if stored is None else Memory.decode(bytes(stored[0]))
        if stored is None:
            memory.manifest = self._manifests.get(run)
        new, odd = _unpacked(rows, memory)
        if memory.over:
            if new:
                odd.append("events came after its end, and were not judged")
        else:
            yield from self._fold(run, memory, new, at)
        for flaw in odd:
            if flaw not in memory.flaws:
                memory.flaws.append(flaw)
                yield flaw_row(run, flaw, at)
        memory.seen_at = at
        self._memory.update((memory.encode(),))

    def _fold(self, run: str, memory: Memory, new: list[pa.Table], at: float) -> Iterator[Row]:
        before = [unpack_rows(bytes(row[0])) for row in self._rows.get()]
        folded = Fold(run, self._rules, memory).add(before, new)
        if folded.kept is None and len(before) >= _CHUNKS_MOST:
            folded.kept = pa.concat_tables([*before, folded.fresh])
        if folded.kept is None:
            kept = sum(map(len, before)) + len(folded.fresh)
            if len(folded.fresh):
                self._rows.appendValue((pack_rows(folded.fresh),))
        else:
            kept = len(folded.kept)
            self._rows.clear()
            if kept:
                self._rows.put([(pack_rows(folded.kept.unify_dictionaries()),)])
        memory.over = folded.over
        yield from _news(memory, folded, at)
        for flaw in folded.flaws:
            yield flaw_row(run, flaw, at)
        yield status_row(run, memory, folded, kept, at)


def _unpacked(rows: Iterator[Row], memory: Memory) -> tuple[list[pa.Table], list[str]]:
    """The events that came, and the words about those that cannot be used."""
    tables, odd = [], []
    for row in rows:
        payload = bytes(row["payload"])
        if row["part"] == _EVENTS:
            tables.append(unpack_rows(payload))
        elif row["part"] == _FLAW:
            odd.append(payload.decode())
        else:
            memory.manifest = _later(memory.manifest, payload.decode())
    return tables, odd


def _later(old: str | None, new: str) -> str:
    """Of two manifests in no known order, the one that knows how the run ended."""
    rest = [msgspec.json.decode(line).get("quiesced", False) for line in (old or "{}", new)]
    return old if old is not None and rest[0] and not rest[1] else new


def _news(memory: Memory, folded: Folded, at: float) -> Iterator[Row]:
    """The verdicts that were not given before. A violation stays one, whatever comes."""
    for verdict in folded.verdicts:
        before = memory.standing.get(verdict.property)
        if before is not None and before.verdict == "violated" != verdict.verdict:
            verdict = before
        worse = before is not None and (
            verdict.violations > before.violations
            or verdict.verdict == "violated" != before.verdict
        )
        if before is None or worse or folded.over:
            since = "final" if folded.over else "first" if before is None else "changed"
            yield verdict_row(verdict, since, at)
        memory.standing[verdict.property] = verdict
