"""What runs cost, from their events alone: copies, control bytes, delays and waits.

Everything is counted for each run by itself and many runs at once, with arrays: a sweep has
thousands of events for every millisecond that it may spend on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.sweep.histogram import BUCKETS, bucket_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

__all__ = ["measure"]

_SEND, _RECEIVE, _DELIVER = range(3)
_KINDS = pa.array(["send", "receive", "deliver"])


def measure(events: pa.Table, run: Integers, runs: int) -> dict[str, pa.Array]:
    """Columns with one row per run.

    in: events: `trace.parquet.arrow_schema`, by run, process and position; run: the number of each
        row's run, from 0 to `runs` - 1
    out: events, sent, delivered, received, control_bytes, held_max; and for latency and hold:
        …_buckets and …_counts (lists, see `histogram`), …_us_max (null if there is none)
    """
    rows = _Rows.of(events, run)
    sends, received, delivered = (rows.kind == kind for kind in (_SEND, _RECEIVE, _DELIVER))
    control = np.bincount(rows.run[received], rows.control_bytes[received], runs)
    waits, held_max = _waits(rows, runs)
    return {
        "events": pa.array(np.bincount(run, minlength=runs)),
        "sent": pa.array(np.bincount(rows.run[sends], minlength=runs)),
        "delivered": pa.array(np.bincount(rows.run[delivered], minlength=runs)),
        "received": pa.array(np.bincount(rows.run[received], minlength=runs)),
        "control_bytes": pa.array(control.astype(np.int64)),
        "held_max": pa.array(held_max),
        **_spread("latency", *_latencies(rows), runs),
        **_spread("hold", *waits, runs),
    }


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that are about a message, as arrays; messages and who may get them as numbers."""

    run: Integers
    process: Integers
    kind: Integers
    origin: Integers
    time_us: Integers
    control_bytes: Integers
    message: Integers
    at: Integers
    """The message at this row's process."""
    size: int
    messages: int
    addressed: NDArray[np.bool_]
    """For each message at each process: was it sent to it?"""

    @classmethod
    def of(cls, events: pa.Table, run: Integers) -> _Rows:
        kind = pc.fill_null(pc.index_in(events["kind"], _KINDS), -1).to_numpy()
        about = np.flatnonzero(kind >= 0)
        table, run, kind = events.take(pa.array(about)), run[about], kind[about]

        def integers(name: str) -> Integers:
            column = pc.fill_null(table[name], 0).to_numpy()
            return np.asarray(column, np.int64)

        process, origin, number = map(integers, ("process", "origin", "number"))
        size = int(max(process.max(initial=0), origin.max(initial=0))) + 1
        numbers = int(number.max(initial=0)) + 1
        message = (run * size + origin) * numbers + number
        messages = (int(run.max(initial=0)) + 1) * size * numbers
        sends = np.flatnonzero(kind == _SEND)
        addressed = _addressed(table["destinations"].take(pa.array(sends)), message[sends], size)
        return cls(
            run=run,
            process=process,
            kind=kind,
            origin=origin,
            time_us=integers("time_us"),
            control_bytes=integers("control_bytes"),
            message=message,
            at=message * size + process,
            size=size,
            messages=messages,
            addressed=_flags(addressed, messages * size),
        )

    def first(self, kind: int) -> Integers:
        """For each message at each process the first row of this kind; -1 if there is none."""
        rows = np.flatnonzero(self.kind == kind)
        found = np.full(self.messages * self.size, -1)
        found[self.at[rows[::-1]]] = rows[::-1]  # of several rows the last one written stays
        return found


def _addressed(destinations: pa.ChunkedArray, message: Integers, size: int) -> Integers:
    """The pairs of a message and a process that it was sent to; null means everyone."""
    everyone = pc.is_null(destinations).to_numpy()
    lists = destinations.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    named = np.repeat(message, lengths) * size + lists.flatten().to_numpy()
    all_of_them = message[everyone][:, None] * size + np.arange(size)
    return np.concatenate([named, all_of_them.ravel()])


def _flags(places: Integers, length: int) -> NDArray[np.bool_]:
    flags = np.zeros(length, np.bool_)
    flags[places] = True
    return flags


def _latencies(rows: _Rows) -> tuple[Integers, Integers]:
    """From send to delivery at another process: the runs and the times."""
    sent = np.full(rows.messages, -1)
    sends = np.flatnonzero(rows.kind == _SEND)
    sent[rows.message[sends]] = sends
    delivered = rows.first(_DELIVER)
    delivered = delivered[delivered >= 0]
    delivered = delivered[rows.process[delivered] != rows.origin[delivered]]
    start = sent[rows.message[delivered]]
    known = start >= 0
    delivered, start = delivered[known], start[known]
    return rows.run[delivered], rows.time_us[delivered] - rows.time_us[start]


def _waits(rows: _Rows, runs: int) -> tuple[tuple[Integers, Integers], Integers]:
    """From arrival to delivery at one process: the runs and the times; and for each run how
    many messages were held at once by one process. What was delivered in the moment in which it
    arrived was not held; what was never delivered, though addressed, was held to the end."""
    arrived, delivered = rows.first(_RECEIVE), rows.first(_DELIVER)
    pairs = np.flatnonzero(arrived >= 0)
    arrived, delivered = arrived[pairs], delivered[pairs]
    later = delivered > arrived
    waited = rows.time_us[delivered[later]] - rows.time_us[arrived[later]]

    step = np.zeros(rows.run.size, np.int64)
    step[arrived[later][waited > 0]] += 1
    step[delivered[later][waited > 0]] -= 1
    step[arrived[(delivered < 0) & rows.addressed[pairs]]] += 1
    level = np.cumsum(step)
    lane = rows.run * rows.size + rows.process
    starts = np.flatnonzero(np.diff(lane, prepend=-1))
    before = (level - step)[starts]
    level -= np.repeat(before, np.diff(starts, append=lane.size))
    held_max = np.zeros(runs, np.int64)
    np.maximum.at(held_max, rows.run, level)
    return (rows.run[arrived[later]], waited), held_max


def _spread(name: str, run: Integers, values: Integers, runs: int) -> dict[str, pa.Array]:
    """A histogram for each run."""
    found, counts = np.unique(run * BUCKETS + bucket_of(values), return_counts=True)
    offsets = pa.array(np.searchsorted(found, np.arange(runs + 1) * BUCKETS), pa.int32())
    largest = np.full(runs, -1)
    np.maximum.at(largest, run, values)
    return {
        f"{name}_buckets": pa.ListArray.from_arrays(offsets, pa.array(found % BUCKETS, pa.int16())),
        f"{name}_counts": pa.ListArray.from_arrays(offsets, pa.array(counts, pa.int32())),
        f"{name}_us_max": pa.array(largest, mask=largest < 0),
    }
