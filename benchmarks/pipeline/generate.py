"""Traces of any size that nobody had to simulate: causal broadcast among n processes.

Time goes in steps. In each step every process sends a few messages, and then delivers all that were
sent some steps ago (its lag: 0, 1, 2, 0, …), those of each origin in their order, and the origins
mixed as chance has it. So what a message depends on was sent in earlier steps, and everyone has
delivered those steps: causal order holds. In a `total` trace everyone mixes alike. In one of
`subsets`, each message is for half of the processes, other ones each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter, arrow_schema

SENT_PER_STEP = 4
"""By each process."""
_STEPS_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class Shape:
    processes: int
    deliveries: int
    """About how many rows of that kind."""
    total: bool = False
    faults: bool = False
    """In the middle, four processes do one thing wrong each."""
    subsets: bool = False
    seed: int = 7

    @property
    def steps(self) -> int:
        return max(1, self.deliveries // (SENT_PER_STEP * self.processes * self.readers))

    @property
    def readers(self) -> int:
        """Of each message."""
        return self.processes // 2 if self.subsets else self.processes

    @property
    def name(self) -> str:
        kind = "total" if self.total else "subsets" if self.subsets else "causal"
        return f"{kind}-n{self.processes}-{self.deliveries}{'-faults' * self.faults}"

    @property
    def events(self) -> int:
        sound = self.steps * SENT_PER_STEP * self.processes * (1 + self.readers)
        return sound + self.faults  # one is left out, two are added


@numba.njit
def _log(
    me: int, processes: int, readers: int, low: int, high: int, steps: int, seed: int,
    kind: Any, origin: Any, number: Any, step_of: Any,
) -> int:  # fmt: skip
    """Fills in this process's rows of the steps from low to high; returns how many."""
    row = 0
    lag = me % 3
    labels = np.empty(SENT_PER_STEP * processes, np.int32)
    sent = np.empty(processes, np.int64)
    for step in range(low, high):
        if step < steps:
            for k in range(SENT_PER_STEP):
                kind[row] = 0
                origin[row] = me
                number[row] = step * SENT_PER_STEP + k + 1
                step_of[row] = step
                row += 1
        past = step - lag
        if past < 0 or past >= steps:
            continue
        for i in range(len(labels)):
            labels[i] = i % processes
        np.random.seed((seed * 1_000_003 + past) % 2**32)
        for i in range(len(labels) - 1, 0, -1):
            j = np.random.randint(0, i + 1)
            labels[i], labels[j] = labels[j], labels[i]
        sent[:] = past * SENT_PER_STEP
        for i in range(len(labels)):
            sent[labels[i]] += 1
            if (me - sent[labels[i]]) % processes >= readers:
                continue
            kind[row] = 1
            origin[row] = labels[i]
            number[row] = sent[labels[i]]
            step_of[row] = step
            row += 1
    return row


def generate(shape: Shape, directory: Path, *, run: str = "run") -> Path:
    """Writes the trace in ordercast's own layout, unless it is there already."""
    trace = directory / shape.name
    if (trace / "manifest.jsonl").exists():
        return trace
    (trace / "events").mkdir(parents=True, exist_ok=True)
    names = tuple(f"p{p}" for p in range(shape.processes))
    for p in range(shape.processes):
        with LogWriter(trace / "events" / f"{run}-{p:04}.parquet") as writer:
            position = 0
            end = shape.steps + 3
            for low in range(0, end, _STEPS_AT_ONCE):
                high = min(low + _STEPS_AT_ONCE, end)
                table = _rows(shape, run, p, low, high, position)
                if shape.faults and low <= shape.steps // 2 < high:
                    table = _spoilt(table, p, position)
                position += len(table)
                writer.write(table)
    manifest = Manifest(run, names, quiesced=True, order="total" if shape.total else "causal")
    (trace / "manifest.jsonl").write_bytes(manifest.to_json() + b"\n")
    return trace


def _rows(shape: Shape, run: str, p: int, low: int, high: int, position: int) -> pa.Table:
    most = (high - low) * SENT_PER_STEP * (shape.processes + 1)
    kind, origin = np.empty(most, np.int8), np.empty(most, np.int32)
    number, step = np.empty(most, np.int64), np.empty(most, np.int64)
    seed = shape.seed if shape.total else shape.seed + 1000 * (p + 1)
    rows = _log(
        p, shape.processes, shape.readers, low, high, shape.steps, seed, kind, origin, number, step
    )
    positions = np.arange(position, position + rows)
    sends, kinds = kind[:rows] == 0, pa.array(["send", "deliver"])
    columns = [
        pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array([run])).cast(pa.string()),
        pa.array(np.full(rows, p, np.int32)),
        pa.array(positions),
        pa.DictionaryArray.from_arrays(kind[:rows], kinds).cast(pa.string()),
        pa.array(origin[:rows]),
        pa.array(number[:rows]),
        _destinations(shape, number[:rows], sends),
        pa.array(step[:rows] * 1000 + positions % 997),
        pa.array(np.full(rows, 64, np.int32)),
        pa.array(np.where(sends, 0, 4 * shape.processes).astype(np.int32)),
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema())


def _destinations(shape: Shape, number: Any, sends: Any) -> pa.Array:
    """Those that `_log` gives a message to."""
    if not shape.subsets:
        return pa.nulls(len(number), pa.list_(pa.int32()))
    readers = (number[sends][:, None] + np.arange(shape.readers)) % shape.processes
    starts = np.concatenate(([0], np.cumsum(sends))) * shape.readers
    lists = pa.ListArray.from_arrays(
        pa.array(starts.astype(np.int32)), pa.array(readers.astype(np.int32).ravel())
    )
    return pc.if_else(pa.array(sends), lists, None)


def _spoilt(table: pa.Table, p: int, position: int) -> pa.Table:
    """The rows of one process, with its fault: p1 delivers two messages of one origin the wrong way
    round, p2 leaves one out, p3 delivers one twice, p4 one that nobody sent."""
    kind, origin = table.column("kind").to_numpy(), table.column("origin").to_numpy()
    mine = np.flatnonzero((kind == "deliver") & (origin == 0))
    one, other = mine[len(mine) // 2 : len(mine) // 2 + 2].tolist()
    rows = np.arange(len(table))
    if p == 1:
        rows[[one, other]] = rows[[other, one]]
    elif p == 2:
        rows = np.delete(rows, one)
    elif p in (3, 4):
        rows = np.insert(rows, other + 1, one)
    found = table.take(pa.array(rows))
    if p == 4:
        numbers = found.column("number").to_numpy().copy()
        numbers[other + 1] = 10**12
        found = found.set_column(5, "number", pa.array(numbers))
    positions = pa.array(np.arange(position, position + len(found)))
    return found.set_column(2, "position", positions).cast(arrow_schema())
