"""From a trace on disk to tables, or to one sentence that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from ordercast.errors import TraceError
from ordercast.pipeline.facts import attendance
from ordercast.pipeline.rows import many_lines, place_flaws, read_rows
from ordercast.pipeline.rules import COLUMNS, Columns, columns_of
from ordercast.trace.directory import event_files, read_manifests
from ordercast.trace.manifest import Manifest

__all__ = ["Log", "Source", "inspect", "read_source", "read_trace"]


class Log(NamedTuple):
    """A trace that may be judged."""

    events: DataFrame
    """One row per event (`trace.parquet.arrow_schema`)."""
    runs: DataFrame
    """One row per run: see `facts`, and names (as far as the manifest gives them)."""
    manifests: Mapping[str, Manifest]
    event_count: int
    kept: DataFrame
    """What `release` frees."""

    def release(self) -> None:
        self.kept.unpersist()


@dataclass(frozen=True, slots=True)
class Source:
    """What can be known of a trace without reading its events."""

    path: Path
    lines: tuple[Path, ...]
    """The files of JSON lines."""
    parquet: Mapping[Path, Columns]
    manifests: Mapping[str, Manifest]

    @property
    def size(self) -> int:
        """Bytes of events on disk."""
        return sum(file.stat().st_size for file in (*self.lines, *self.parquet))


def inspect(path: Path) -> Source:
    """Needs no session, so that a mistyped name is told before one starts."""
    files = [file.absolute() for file in event_files(path)]
    return Source(
        path=path,
        lines=tuple(file for file in files if file.suffix == ".jsonl"),
        parquet={file: columns_of(file) for file in files if file.suffix == ".parquet"},
        manifests={manifest.run: manifest for manifest in read_manifests(path)},
    )


def read_trace(spark: SparkSession, path: Path, *, quiesced: bool = False) -> Log:
    """Reads a trace and refuses a broken one. `quiesced` is for runs without a manifest."""
    return read_source(spark, inspect(path), quiesced=quiesced)


def read_source(spark: SparkSession, source: Source, *, quiesced: bool = False) -> Log:
    rows = read_rows(spark, source.lines, source.parquet)
    if many_lines(source.lines):
        rows = rows.persist()  # Parquet is cheaper to read again than to keep
    try:
        present = attendance(rows).collect()
        if any(row["flaws"] for row in present):
            _refuse_flaw(spark, source)
        runs = _runs(source, present, quiesced=quiesced)
    except Exception as error:
        rows.unpersist()
        if "FAILED_READ_FILE" in (words := str(error)):  # Spark's name for it, in whatever it threw
            raise _unreadable(source, words) from None
        raise
    return Log(
        events=rows.select(*COLUMNS),
        runs=spark.createDataFrame(runs),
        manifests=source.manifests,
        event_count=sum(row["events"] for row in present),
        kept=rows,
    )


def _refuse_flaw(spark: SparkSession, source: Source) -> NoReturn:
    flaws = place_flaws(spark, source.lines, source.parquet)
    (first,) = flaws.agg(F.min(F.struct("file", "row", "flaw")).alias("one")).collect()
    file, row, flaw = first["one"]
    if file.startswith("file:"):  # Parquet, whose rows Spark counts; a JSON line's flaw says it all
        raise TraceError(f"{unquote(urlparse(file).path)}, row {row}: {flaw}")
    raise TraceError(flaw)


def _unreadable(source: Source, words: str) -> TraceError:
    """The footer was sound, so what comes after the file's name in Spark's words says little."""
    named = [file for file in source.parquet if file.name in words]
    return TraceError(f"{named[0] if named else source.path}: not a readable Parquet file")


@dataclass(slots=True)
class _Run:
    """A line of `runs` in the making."""

    manifest: Manifest | None = None
    seen: list[int] = field(default_factory=list)
    crashed: list[int] = field(default_factory=list)


def _runs(source: Source, present: list[Row], *, quiesced: bool) -> pa.Table:
    """The table of runs: what the manifests say and what the events show."""
    if not present:
        raise TraceError(f"{source.path}: there is no event in it")
    runs = {run: _Run(manifest) for run, manifest in source.manifests.items()}
    for row in sorted(present, key=lambda row: (row["run"], row["process"])):
        run = runs.setdefault(row["run"], _Run())
        _refuse_contradictions(source.path, run.manifest, row)
        run.seen.append(row["process"])
        if row["crash"] is not None and (row["recover"] is None or row["recover"] < row["crash"]):
            run.crashed.append(row["process"])
    return pa.Table.from_pylist(
        [_line(name, run, quiesced=quiesced) for name, run in sorted(runs.items())], _RUNS
    )


def _line(name: str, run: _Run, *, quiesced: bool) -> dict[str, object]:
    listed = run.manifest is not None
    manifest = run.manifest or Manifest(name, (), quiesced=quiesced)
    return {
        "run": name,
        "names": manifest.processes,
        "size": len(manifest.processes) if listed else None,
        "members": range(len(manifest.processes)) if listed else run.seen,
        "seen": run.seen,
        "crashed": run.crashed,
        "quiesced": manifest.quiesced,
        "complete": manifest.complete,
    }


def _refuse_contradictions(path: Path, manifest: Manifest | None, row: Row) -> None:
    where, process = f"{path}: run {row['run']!r}", row["process"]
    if row["position_twice"] is not None:
        at = row["position_twice"]
        raise TraceError(f"{where} has two events of process {process} at position {at}")
    if row["number_twice"] is not None:
        raise TraceError(f"{where} has two send rows for {process}:{row['number_twice']}")
    if manifest is None:
        return
    size = len(manifest.processes)
    named = f"but its manifest names {size} process{'es' * (size != 1)}"
    if process >= size:
        raise TraceError(f"{where} has events of process {process}, {named}")
    if row["farthest"] is not None and row["farthest"] >= size:
        raise TraceError(
            f"{where} has a message of process {process} for process {row['farthest']}, {named}"
        )


_RUNS = pa.schema(
    {
        "run": pa.string(),
        "names": pa.list_(pa.string()),
        "size": pa.int32(),
        "members": pa.list_(pa.int32()),
        "seen": pa.list_(pa.int32()),
        "crashed": pa.list_(pa.int32()),
        "quiesced": pa.bool_(),
        "complete": pa.bool_(),
    }
)
