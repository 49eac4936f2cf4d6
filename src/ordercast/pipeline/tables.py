"""Result tables in a directory, which grow as the trace does.

    DIR/results.json                  what was judged, from which files, under which terms
    DIR/verdicts/part-0001.parquet    one part for each verify; the other tables likewise

A part counts once results.json names it, and that file is replaced in one go when all of the part
is there. So whoever is killed leaves the old tables as they were, and the next verify judges what
is not named, under the same number.

Rows come here through the driver, some at a time: a cluster's workers need not see DIR.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import TraceError, UsageError
from ordercast.pipeline.findings import Findings
from ordercast.pipeline.options import Options
from ordercast.pipeline.paths import plain_paths
from ordercast.pipeline.record import (
    Part,
    Record,
    Terms,
    files_of,
    hidden,
    part_file,
    read_record,
    remove_unfinished,
    write_record,
)
from ordercast.pipeline.results import TABLES, Results, table_schema
from ordercast.pipeline.schemas import spark_schema
from ordercast.pipeline.source import Source, inspect, stamp_of
from ordercast.trace.directory import event_files
from ordercast.trace.writing import naming

__all__ = ["Directory", "Stored", "open_directory"]

_ANEW = "--again judges everything anew"
_ROWS_AT_ONCE = 1 << 16


@contextmanager
def open_directory(path: Path, options: Options, *, again: bool) -> Iterator[Directory]:
    """For one verify; keeps others out. A directory that it made in vain is gone afterwards."""
    path.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDONLY)
    try:
        _take(lock, path)
        try:
            directory = Directory(path, options, again=again)
            try:
                yield directory
            except BaseException:
                directory.take_back()
                raise
        finally:
            with suppress(OSError):
                path.rmdir()
    finally:
        os.close(lock)


def _take(lock: int, path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"{path}: another verify is writing here") from None


class Directory:
    def __init__(self, path: Path, options: Options, *, again: bool) -> None:
        self.path = path
        self._terms = Terms.of(options)
        found = read_record(path)
        self._last = max((part.number for part in found.parts), default=0) if found else 0
        if found is None or again:
            found = Record(self._terms)
        elif found.terms != self._terms:
            raise UsageError(
                f"{path}: was judged with another --only, --order, --quiesced or --skip-bad-rows: "
                "give the same, or judge everything anew with --again"
            )
        self.record = found
        self._stamps: dict[str, tuple[int, int]] = {}
        self._begun: dict[str, Path] = {}
        """The files of the part that is being written, by table."""

    def unjudged(self, trace: Path, *, made_of: Path | None = None) -> Source:
        """What of a trace is not here yet, which may be `made_of` logs for a moment only. Raises a
        `TraceError` if what is here has changed."""
        judged = {file: stamp for part in self.record.parts for file, stamp in part.files.items()}
        before = set()
        for file in event_files(trace):
            if made_of is None or file.is_symlink():
                name, stamp = str(file.resolve()), stamp_of(file)
            else:
                name, stamp = str(made_of.resolve() / file.relative_to(trace)), _contents(file)
            if name not in judged:
                self._stamps[name] = stamp
            elif judged[name] == stamp:
                before.add(file.absolute())
            elif made_of is None:
                raise TraceError(f"{file}: has changed since it was judged: {_ANEW}")
            else:
                raise TraceError(
                    f"{made_of}: has changed since it was judged, or is read in another way: "
                    f"{_ANEW}"
                )
        source = inspect(trace, skip=self._terms.skip, without=before)
        return source.only(self._new_runs(source))

    def _new_runs(self, source: Source) -> pa.Array:
        """Which manifests were not there before. Those that were must be as they were."""
        known = self._table("runs", ["run", "manifest"])
        names = source.described["run"]
        place = pc.index_in(names, known["run"].combine_chunks())
        same = pc.equal(known["manifest"].take(place), source.described["manifest"])
        changed = pc.and_(place.is_valid(), pc.invert(pc.fill_null(same, False)))
        for run in names.filter(changed).to_pylist()[:1]:
            raise TraceError(
                f"{source.path}: the manifest of run {run!r} has changed since it was judged: "
                f"{_ANEW}"
            )
        return place.is_null()

    def add(self, results: Results, source: Source, *, torn: bool) -> None:
        """The results on what was `unjudged`, the source, as one part more."""
        runs, flaws = results.collect("runs"), results.collect("flaws")
        self._check(pa.concat_tables([runs.select(["run"]), flaws.select(["run"])])["run"], torn)
        number = self._last + 1
        names = tuple(name for name in TABLES if name != "flaws" or len(flaws))
        self._begun = files = {name: part_file(self.path, name, number) for name in names}
        for name, file in files.items():
            with naming(file):
                _write(hidden(file), name, results.stream(name))
        source.require_same()
        for file in files.values():
            os.replace(hidden(file), file)
        events = pc.sum(runs["events"]).as_py() or 0
        part = Part(number, len(runs), events, names, self._stamps)
        self.record = Record(self._terms, (*self.record.parts, part), torn)
        write_record(self.path, self.record)
        self._sweep()

    def require_writable(self) -> None:
        """Told before anything is judged, which takes long."""
        if not os.access(self.path, os.W_OK):
            raise UsageError(f"{self.path}: nothing can be written here: choose another place")

    def take_back(self) -> None:
        """Removes a part that was begun and does not count."""
        found = read_record(self.path)
        counts = (
            set()
            if found is None
            else {file for name in TABLES for file in files_of(self.path, found, name)}
        )
        for file in self._begun.values():
            hidden(file).unlink(missing_ok=True)
            if file not in counts:
                file.unlink(missing_ok=True)
            with suppress(OSError):  # an older part is in it
                file.parent.rmdir()
        with suppress(OSError):  # what went wrong before is told, and not this
            remove_unfinished(self.path)

    def _check(self, runs: pa.ChunkedArray, torn: bool) -> None:
        known = self._table("runs", ["run"])["run"].combine_chunks()
        for run in runs.filter(pc.is_in(runs, known)).unique().to_pylist()[:1]:
            raise TraceError(
                f"{self.path}: run {run!r} was judged before, and now rows of it are in other "
                f"files than those that were read then: {_ANEW}"
            )
        if torn and self.record.parts and not self.record.torn:
            raise TraceError(
                f"{self.path}: rows were left out that may belong to any run, also to one that was "
                f"judged before: {_ANEW}"
            )

    def findings(self) -> Findings:
        """On all runs, whenever they were judged."""
        return Findings.of(*(self._table(name) for name in ("verdicts", "runs", "flaws")))

    def _table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        nothing = TABLES[name].empty_table()
        files = files_of(self.path, self.record, name)
        tables = [pq.read_table(file, columns=columns) for file in files]
        return pa.concat_tables([nothing.select(columns or nothing.column_names), *tables])

    def _sweep(self) -> None:
        """Removes parts that are not named: of a verify that was killed, or before --again."""
        named = {file for name in TABLES for file in files_of(self.path, self.record, name)}
        for name in TABLES:
            for file in (self.path / name).glob("*part-*.parquet"):
                if file not in named:
                    file.unlink()


def _contents(file: Path) -> tuple[int, int]:
    """A stamp for what is made anew each time: how long its rows are, and a number for them. What
    else Spark writes to a footer comes in any order."""
    length = file.stat().st_size
    digest = hashlib.blake2b(digest_size=7)
    with file.open("rb") as opened:
        if file.suffix == ".parquet":
            opened.seek(-8, os.SEEK_END)
            length -= 8 + int.from_bytes(opened.read(4), "little")
            opened.seek(0)
        left = length
        while left > 0 and (some := opened.read(min(left, 1 << 20))):
            digest.update(some)
            left -= len(some)
    return length, int.from_bytes(digest.digest())


def _write(file: Path, name: str, tables: Iterable[pa.Table]) -> None:
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as bare:
        with pq.ParquetWriter(bare, TABLES[name]) as writer:
            for rows in _gathered(tables):
                writer.write_table(rows)
        bare.flush()
        os.fsync(bare.fileno())


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of a good size for a row group."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= _ROWS_AT_ONCE:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


class Stored:
    """The tables of a directory as DataFrames, as they were when it was opened."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        record = read_record(path)
        if record is None:
            raise TraceError(f"{path}: there are no results of verify --output here")
        self.record = record
        self._spark = spark
        self._path = path.absolute()

    def table(self, name: str) -> DataFrame:
        """verdicts, violations, runs, flaws, costs or throughput."""
        schema = spark_schema(table_schema(name))
        files = files_of(self._path, self.record, name)
        if not files:
            return self._spark.createDataFrame([], schema)
        return self._spark.read.schema(schema).parquet(*plain_paths(files))
