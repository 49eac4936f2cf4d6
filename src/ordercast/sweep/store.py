"""A sweep on disk, such that it can be killed at any moment and taken up again.

    DIR/sweep/configurations.parquet   the table, written at the end
    DIR/sweep/runs/*.parquet           finished blocks, one row per run
    DIR/traces                         a trace that `verify` reads, if traces were asked for

A block counts as done once its file under `runs` is there; its traces are written before that.
Files appear whole, under a temporary name first.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.errors import TraceError, UsageError
from ordercast.sweep.block import Results
from ordercast.trace.writing import appearing

__all__ = ["Store"]


class Store:
    def __init__(self, directory: Path, *, traces: bool) -> None:
        self.table = directory / "sweep" / "configurations.parquet"
        self._runs = directory / "sweep" / "runs"
        self._traces = directory / "traces" if traces else None
        self._runs.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(directory / "sweep" / "lock")
        if self._traces is not None:
            (self._traces / "events").mkdir(parents=True, exist_ok=True)
            self._forget_unfinished(self._traces)

    def done(self) -> Iterator[pa.Table]:
        """The finished blocks; if traces are wanted, those that have one."""
        for file in sorted(self._runs.glob("*.parquet")):
            if self._traces is None or (self._traces / "events" / file.name).exists():
                try:
                    yield pq.read_table(file)
                except (pa.ArrowInvalid, OSError) as error:
                    raise TraceError(f"{file}: not a finished block, remove it: {error}") from None

    def add(self, results: Results) -> None:
        name = f"{results.name}.parquet"
        if self._traces is not None:
            assert results.events is not None
            _write(self._traces / "events" / name, results.events)
        _write(self._runs / name, results.runs)

    def finish(self, table: pa.Table) -> None:
        """Write the table, and the manifest of all traces that are here."""
        if self._traces is not None:
            lines = [line for runs in self.done() for line in runs["manifest"].to_pylist()]
            _write(self._traces / "manifest.jsonl", "".join(f"{line}\n" for line in lines).encode())
        file = pa.BufferOutputStream()
        pq.write_table(table, file)
        _write(self.table, file.getvalue())

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def _forget_unfinished(self, traces: Path) -> None:
        """A trace whose block was not finished would tell of the same runs twice."""
        for file in (traces / "events").iterdir():
            if not (self._runs / file.name).exists():
                file.unlink()


def _write(file: Path, content: bytes | pa.Buffer) -> None:
    with appearing(file) as unfinished, unfinished.open("wb") as bare:
        bare.write(content)
        bare.flush()
        os.fsync(bare.fileno())


def _locked(file: Path) -> BinaryIO:
    """Keeps others out until it is closed, or this process ends, however it does."""
    lock = file.open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UsageError(f"{file.parent.parent}: another sweep is writing here") from None
    return lock
