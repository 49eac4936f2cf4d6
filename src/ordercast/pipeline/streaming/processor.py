"""The shell around a bucket inside Spark: state and chunks in, rows in order out, and a timer.

Every call on a state variable crosses a socket. So there are two, each one binary, read and written
once for each bucket of a batch; what waits is written only if it has changed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from ordercast.pipeline.streaming.bucket import Bucket, Step, new_bucket, take_in, time_out
from ordercast.pipeline.streaming.chunks import by_arrival, rows_of
from ordercast.pipeline.streaming.form import ADDED, Form
from ordercast.pipeline.streaming.leaving import told
from ordercast.pipeline.streaming.state import (
    read_counts,
    read_held,
    require_form,
    write_counts,
    write_form,
    write_held,
)
from ordercast.pipeline.workers import keep_what_is_loaded

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

__all__ = ["COUNTS", "HELD", "CausalProcessor", "output_of"]

COUNTS, HELD = "counts", "held"
"""The names of the state variables."""
_VALUE = StructType([StructField("value", BinaryType())])
_EXPIRY = 1 << 30
"""The step for what has waited long enough. Others are counted: each is a portion of what came."""
_PORTION_BYTES = 64 << 20
"""What is taken in at once: several times as much is needed while that goes on."""


def output_of(schema: StructType) -> StructType:
    """The stream's columns, and `form.ADDED`. A row without an outcome is none of the stream's: it
    tells what a step came to. So any column may be null, as Spark has it for all that Python makes.
    """
    kinds = (LongType(), StringType(), StringType())
    added = (StructField(name, kind) for name, kind in zip(ADDED, kinds, strict=True))
    return StructType([*schema, *added])


class CausalProcessor(StatefulProcessor):
    def __init__(self, form: Form) -> None:
        self._form = form

    def init(self, handle: StatefulProcessorHandle) -> None:
        keep_what_is_loaded()
        self._handle = handle
        self._counts = handle.getValueState(COUNTS, _VALUE)
        self._held = handle.getValueState(HELD, _VALUE)

    def handleInputRows(  # noqa: N802 - Spark's names
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        places = ("partition", "sequence", "chunk")
        known = [row for some in rows for row in zip(*(some[name] for name in places), strict=True)]
        chunks = by_arrival((row for row in known if row[2] is not None), self._form.number)
        after = before = self._load()
        if not chunks:
            if before is None:
                self._counts.update((write_form(self._form),))
            return
        now_ms = self._now_ms(timerValues)
        for at, some in enumerate(_portions(map(rows_of, chunks))):
            new = pa.concat_tables(some)
            step = take_in(after or new_bucket(self._form, new.schema), new, now_ms)
            after = step.after
            yield from _frames(key, at, step)
        assert after is not None
        self._store(before, after)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        before = self._load()
        if before is not None and self._form.expires:
            rung = replace(before, ledger=replace(before.ledger, timer_ms=-1))
            step = time_out(rung, timerValues.getCurrentProcessingTimeInMs())
            self._store(before, step.after)
            yield from _frames(key, _EXPIRY, step)

    def close(self) -> None:
        pass

    def _now_ms(self, timer_values: TimerValues) -> int:
        """Spark tells the time of a batch, the same if it runs again, only where there are timers;
        elsewhere it is but for people to know how long a message has waited."""
        if self._form.expires:
            return timer_values.getCurrentProcessingTimeInMs()
        return time.time_ns() // 1_000_000

    def _load(self) -> Bucket | None:
        counts, held = self._counts.get(), self._held.get()
        if counts is not None:
            require_form(bytes(counts[0]), self._form)
        if counts is None or held is None:
            return None
        return Bucket(
            self._form,
            read_counts(bytes(counts[0]), self._form),
            read_held(bytes(held[0]), self._form),
        )

    def _store(self, before: Bucket | None, after: Bucket) -> None:
        if before is None or after.held is not before.held:
            self._held.update((write_held(after.held, self._form),))
        ledger = after.ledger
        if self._form.expires and len(after.held.rows):
            assert self._form.wait_ms is not None
            due_ms = int(after.held.arrived_ms.min()) + self._form.wait_ms
            if ledger.timer_ms == -1 or due_ms < ledger.timer_ms:
                self._handle.registerTimer(due_ms)
                ledger = replace(ledger, timer_ms=due_ms)
        self._counts.update((write_counts(ledger, self._form),))


def _portions(tables: Iterable[pa.Table]) -> Iterator[list[pa.Table]]:
    some: list[pa.Table] = []
    size = 0
    for table in tables:
        some.append(table)
        size += table.nbytes
        if size >= _PORTION_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _frames(key: Any, which: int, step: Step) -> Iterator[pd.DataFrame]:
    from ordercast.pipeline.streaming.columns import frames  # pandas takes its time

    (bucket,) = key
    tally = json.dumps({"bucket": int(bucket), "step": which, **step.tally._asdict()})
    for rows in (*step.out, told(step.after.held.rows.schema, tally)):
        yield from frames(rows)
