"""Very many small runs in one trace that nobody had to simulate, as a sweep would leave them.

Every run is a causal broadcast among four processes, which send five messages each: 100 rows. As in
`generate`, each process sends one message per step and then delivers those of some steps ago, the
origins mixed as chance has it. All runs have the same shape, so a whole batch of them is a few
arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ordercast.trace.manifest import Manifest
from ordercast.trace.parquet import LogWriter, arrow_schema

__all__ = ["PROCESSES", "ManyRuns", "generate_runs"]

PROCESSES = 4
STEPS = 5
LOG_ROWS = STEPS * (1 + PROCESSES)
"""Of one process."""
RUN_ROWS = PROCESSES * LOG_ROWS
_RUNS_IN_FILE = 10_000


@dataclass(frozen=True)
class ManyRuns:
    runs: int
    seed: int = 7

    @property
    def name(self) -> str:
        return f"runs-{self.runs}x{RUN_ROWS}"

    @property
    def events(self) -> int:
        return self.runs * RUN_ROWS


def generate_runs(shape: ManyRuns, directory: Path) -> Path:
    """Writes the trace in ordercast's own layout, unless it is there already."""
    trace = directory / shape.name
    if (trace / "manifest.jsonl").exists():
        return trace
    (trace / "events").mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(shape.seed)
    for part, low in enumerate(range(0, shape.runs, _RUNS_IN_FILE)):
        names = _names(low, min(low + _RUNS_IN_FILE, shape.runs))
        with LogWriter(trace / "events" / f"part-{part:04}.parquet") as writer:
            writer.write(_rows(names, chance))
    members = tuple(f"p{p}" for p in range(PROCESSES))
    with (trace / "manifest.jsonl").open("wb") as lines:
        for name in _names(0, shape.runs):
            manifest = Manifest(name, members, quiesced=True, order="causal")
            lines.write(manifest.to_json() + b"\n")
    return trace


def _names(low: int, high: int) -> list[str]:
    return [f"run-{index:07}" for index in range(low, high)]


def _template() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is alike in all runs, process × row: the message's number, its step's time in ms, and
    which of a process's deliveries the row is (-1: it is a send)."""
    number, time_ms, delivery = (np.empty((PROCESSES, LOG_ROWS), np.int64) for _ in range(3))
    for process in range(PROCESSES):
        lag = process % 3
        rows = []
        for step in range(STEPS + 3):
            if step < STEPS:
                rows.append((step + 1, step, -1))
            past = step - lag
            if 0 <= past < STEPS:
                rows += [(past + 1, step, past * PROCESSES + i) for i in range(PROCESSES)]
        number[process], time_ms[process], delivery[process] = zip(*rows, strict=True)
    return number, time_ms, delivery


def _rows(names: list[str], chance: np.random.Generator) -> pa.Table:
    number, time_ms, delivery = _template()
    runs, size = len(names), len(names) * RUN_ROWS
    mixed = np.argsort(chance.random((runs, PROCESSES, STEPS, PROCESSES)), axis=-1)
    deliveries = mixed.reshape(runs, PROCESSES, STEPS * PROCESSES)
    process = np.arange(PROCESSES)[:, None]
    origin = np.where(delivery < 0, process, deliveries[:, process, delivery])
    sends = np.tile((delivery < 0).reshape(-1), runs)

    def in_every_run(values: np.ndarray) -> np.ndarray:
        return np.tile(np.broadcast_to(values, (PROCESSES, LOG_ROWS)).reshape(-1), runs)

    def words(codes: np.ndarray, dictionary: list[str]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(codes, pa.array(dictionary)).cast(pa.string())

    position = in_every_run(np.arange(LOG_ROWS))
    columns = [
        words(np.repeat(np.arange(runs, dtype=np.int32), RUN_ROWS), names),
        pa.array(in_every_run(process).astype(np.int32)),
        pa.array(position),
        words(np.where(sends, 0, 1).astype(np.int8), ["send", "deliver"]),
        pa.array(origin.reshape(-1).astype(np.int32)),
        pa.array(in_every_run(number)),
        pa.nulls(size, pa.list_(pa.int32())),
        pa.array(in_every_run(time_ms) * 1000 + position),
        pa.array(np.full(size, 64, np.int32)),
        pa.array(np.where(sends, 0, 4 * PROCESSES).astype(np.int32)),
    ]
    return pa.Table.from_arrays(columns, schema=arrow_schema())
