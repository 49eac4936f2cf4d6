"""What can be known of a trace without reading its events, and how to cut it into work.

Whole runs go to one task each time, many to a task or few; where a run's rows lie is told by the
files' own statistics. Rows of many runs all mixed up cannot be cut so: they must travel.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.errors import TraceError, UnusableError
from ordercast.pipeline.described import describe
from ordercast.pipeline.rows import Piece
from ordercast.pipeline.rules import check_schema
from ordercast.trace.directory import event_files, read_manifests, require_file
from ordercast.trace.gather import undisturbed
from ordercast.trace.parquet import reading, statistics_of

__all__ = ["Group", "Item", "Source", "huge_runs", "inspect", "items", "stamp_of"]

_LINE_BYTES = 120
"""About what an event takes as a JSON line: only to guess how many there are."""
_WASTE_MOST = 1.5
"""How much of the trace may be read in vain, for whole runs' sake, before it is shuffled."""


@dataclass(frozen=True, slots=True)
class Group:
    """A row group of a Parquet file, and what its footer says of it."""

    piece: Piece
    bounds: Mapping[str, tuple[Any, Any]]
    """The least and the greatest value of a column, where they are known."""

    @property
    def runs(self) -> tuple[str, str] | None:
        return self.bounds.get("run")


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    lines: tuple[Piece, ...]
    groups: tuple[Group, ...]
    described: pa.Table
    """What the manifests say: `DESCRIBED`, by run."""
    size: int
    """Bytes of events on disk."""
    unreadable: tuple[tuple[str, str], ...] = ()
    """Files that cannot be used, and why; only where they may be skipped."""
    stamps: Mapping[Path, tuple[int, int]] = field(default_factory=dict)
    """What the Parquet files were like when they were looked at."""

    @property
    def files(self) -> list[Path]:
        pieces = (*self.lines, *(group.piece for group in self.groups))
        return [Path(name) for name in dict.fromkeys(piece.file for piece in pieces)]

    @property
    def rows(self) -> int:
        """How many events there are, or about how many."""
        exact = sum(group.piece.rows for group in self.groups)
        return exact + sum(piece.rows for piece in self.lines)

    def greatest(self, name: str) -> int:
        """The greatest value of a column, as far as it is known."""
        return max(
            (group.bounds[name][1] for group in self.groups if name in group.bounds), default=0
        )

    @property
    def in_order(self) -> bool:
        """Does each process's log lie in order, as far as the row groups' bounds can tell?"""
        bounds = [(g.bounds.get("process"), g.bounds.get("position")) for g in self.groups]
        if any(process is None or position is None for process, position in bounds):
            return False
        spans = sorted((p[0], q[0], p[1], q[1]) for p, q in bounds if p and q)
        return all(
            before[2] < after[0]
            # Positions that belong to several processes say nothing.
            or (before[2] == after[0] and (before[0] < before[2] or before[3] < after[1]))
            for before, after in pairwise(spans)
        )

    def only(self, those: pa.Array) -> Source:
        """The same events, with those of the manifests for which it says true."""
        return replace(self, described=self.described.filter(those))

    def split(self, run: str) -> tuple[Source, Source]:
        """Everything but one run, whose row groups hold nothing else; and that run."""
        mine = pc.equal(self.described["run"], run)
        groups = [
            tuple(g for g in self.groups if (g.runs == (run, run)) == is_it) for is_it in (0, 1)
        ]
        return (
            replace(self.only(pc.invert(mine)), groups=groups[0]),
            replace(self.only(mine), groups=groups[1], lines=(), unreadable=()),
        )

    def require_same(self) -> None:
        """Raises a `TraceError` if tasks may have read other events than were looked at. Who
        adds lines leaves those before; Parquet is written anew, as when logs are gathered again."""
        for file, stamp in self.stamps.items():
            if not file.exists() or stamp_of(file) != stamp:
                raise TraceError(f"{file}: was replaced while it was judged: judge it once more")

    def at(self, tokens: Mapping[Path, str]) -> Source:
        """The same, for tasks that know the files by these names."""

        def moved(piece: Piece) -> Piece:
            return replace(piece, token=tokens[Path(piece.file)])

        return replace(
            self,
            lines=tuple(map(moved, self.lines)),
            groups=tuple(replace(group, piece=moved(group.piece)) for group in self.groups),
        )


@dataclass(frozen=True, slots=True)
class Item:
    """Work for one task: the runs whose names are from `low` to before `high`."""

    pieces: tuple[Piece, ...]
    described: pa.Table
    """What is known of these runs: `DESCRIBED`."""
    low: str = ""
    high: str | None = None

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)


def inspect(path: Path, *, skip: bool = False, without: Collection[Path] = ()) -> Source:
    """Needs no session, so that a mistyped name is told before one starts. Files that it is to go
    `without` are not even opened."""
    with undisturbed(path):
        return _inspected(path, skip=skip, without=without)


def _inspected(path: Path, *, skip: bool, without: Collection[Path]) -> Source:
    lines: list[Piece] = []
    groups: list[Group] = []
    unreadable: list[tuple[str, str]] = []
    stamps: dict[Path, tuple[int, int]] = {}
    size = 0
    files = [file.absolute() for file in event_files(path)]
    for file in files:
        if file in without:
            continue
        try:
            require_file(file)
            size += (mine := stamp_of(file))[0]
            if file.suffix == ".jsonl":
                lines.append(Piece(str(file), str(file), None, rows=mine[0] // _LINE_BYTES))
            else:
                stamps[file] = mine
                groups += _groups(file)
        except TraceError as error:
            if not skip and len(files) > 1:
                raise UnusableError(str(error)) from None
            if not skip:
                raise
            unreadable.append((str(file), str(error).removeprefix(f"{file}: ")))
    return Source(
        path=path,
        lines=tuple(lines),
        groups=tuple(groups),
        described=describe(read_manifests(path)),
        size=size,
        unreadable=tuple(unreadable),
        stamps=stamps,
    )


def stamp_of(file: Path) -> tuple[int, int]:
    """Its size, and the time at which it changed (ns): another file has others."""
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _groups(file: Path) -> Iterable[Group]:
    with reading(file):
        with pq.ParquetFile(file) as opened:
            schema, footer = opened.schema_arrow, opened.metadata
        check_schema(schema, str(file))
        first_row = 1
        for index in range(footer.num_row_groups):
            rows = footer.row_group(index).num_rows
            piece = Piece(str(file), str(file), (index,), first_row, rows)
            yield Group(piece, _bounds(footer, index))
            first_row += rows


def _bounds(footer: Any, index: int) -> dict[str, tuple[Any, Any]]:
    known = {}
    for place in range(footer.num_columns):
        name = footer.schema.column(place).path
        if name in ("run", "process", "position"):
            found = statistics_of(footer, index, place)
            if found is not None and found.has_min_max and not found.null_count:
                known[name] = (found.min, found.max)
    return known


def items(source: Source, rows_each: int) -> list[Item] | None:
    """The trace cut between runs into items of about that many rows; None if that is not to be
    had, or would mean reading too much too often."""
    pieces = (*source.lines, *(group.piece for group in source.groups))
    if source.rows <= rows_each:
        return [Item(pieces, source.described)]
    if source.lines or not all(group.runs for group in source.groups):
        return None
    cuts = _cuts(source, rows_each)
    names = source.described["run"].to_pylist()
    edges = [*(bisect_left(names, cut) for cut in cuts), len(names)]
    found = []
    for i, (low, high) in enumerate(zip(cuts, [*cuts[1:], None], strict=True)):
        mine = tuple(
            group.piece
            for group in source.groups
            if group.bounds["run"][1] >= low and (high is None or group.bounds["run"][0] < high)
        )
        described = source.described.slice(edges[i], edges[i + 1] - edges[i])
        found.append(Item(mine, described, low, high))
    if sum(item.rows for item in found) > _WASTE_MOST * source.rows:
        return None
    return found


def _cuts(source: Source, rows_each: int) -> list[str]:
    """Run names to cut before. The first one is before everything."""
    cuts, rows = [""], 0
    for group in sorted(source.groups, key=lambda group: group.bounds["run"]):
        low, high = group.bounds["run"]
        if rows >= rows_each and low > cuts[-1]:
            cuts.append(low)
            rows = 0
        rows += group.piece.rows
        if rows >= rows_each and high > max(low, cuts[-1]):
            # The last run of this group may go on in the next one: it starts anew.
            cuts.append(high)
            rows = 0
    return cuts


def huge_runs(source: Source, rows: int) -> list[str]:
    """The runs with at least that many rows which share no row group with another run."""
    if source.lines or not all(group.runs for group in source.groups):
        return []
    sizes: Counter[str] = Counter()
    for group in source.groups:
        low, high = group.bounds["run"]
        if low == high:
            sizes[low] += group.piece.rows
    mixed = [group.bounds["run"] for group in source.groups if len(set(group.bounds["run"])) > 1]
    return [
        run
        for run, size in sorted(sizes.items())
        if size >= rows and not any(low <= run <= high for low, high in mixed)
    ]
