"""What can be known of a trace without reading its events, and how to cut it into work.

Whole runs go to one task each time, many to a task or few; where a run's rows lie is told by the
files' own statistics. Rows of many runs all mixed up cannot be cut so: they must travel.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.pipeline.rows import Piece
from ordercast.pipeline.rules import check_schema
from ordercast.trace.directory import event_files, read_manifests
from ordercast.trace.manifest import Manifest

__all__ = ["Group", "Item", "Source", "digest", "huge_runs", "inspect", "items"]

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
    manifests: Mapping[str, Manifest]
    size: int
    """Bytes of events on disk."""
    unreadable: tuple[tuple[str, str], ...] = ()
    """Files that cannot be used, and why; only where they may be skipped."""

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

    def only(self, runs: Iterable[str]) -> Source:
        """The same events, with these manifests and no others."""
        return replace(self, manifests={run: self.manifests[run] for run in runs})

    def split(self, run: str) -> tuple[Source, Source]:
        """Everything but one run, whose row groups hold nothing else; and that run."""
        mine = {name: one for name, one in self.manifests.items() if name == run}
        rest = {name: one for name, one in self.manifests.items() if name != run}
        groups = [
            tuple(g for g in self.groups if (g.runs == (run, run)) == is_it) for is_it in (0, 1)
        ]
        return (
            replace(self, groups=groups[0], manifests=rest),
            replace(self, groups=groups[1], manifests=mine, lines=(), unreadable=()),
        )

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
    low: str = ""
    high: str | None = None
    runs: tuple[Manifest, ...] = field(default=())

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)


def inspect(path: Path, *, skip: bool = False, without: Collection[Path] = ()) -> Source:
    """Needs no session, so that a mistyped name is told before one starts. Files that it is to go
    `without` are not even opened."""
    lines: list[Piece] = []
    groups: list[Group] = []
    unreadable: list[tuple[str, str]] = []
    size = 0
    for file in (file.absolute() for file in event_files(path)):
        if file in without:
            continue
        size += file.stat().st_size
        if file.suffix == ".jsonl":
            rows = file.stat().st_size // _LINE_BYTES
            lines.append(Piece(str(file), str(file), None, rows=rows))
            continue
        try:
            groups += _groups(file)
        except TraceError as error:
            if not skip:
                raise
            unreadable.append((str(file), str(error).removeprefix(f"{file}: ")))
    return Source(
        path=path,
        lines=tuple(lines),
        groups=tuple(groups),
        manifests={manifest.run: manifest for manifest in read_manifests(path)},
        size=size,
        unreadable=tuple(unreadable),
    )


def digest(manifest: Manifest) -> str:
    """A few letters that change if anything in the manifest does."""
    return hashlib.blake2b(manifest.to_json(), digest_size=8).hexdigest()


def _groups(file: Path) -> Iterable[Group]:
    try:
        with pq.ParquetFile(file) as opened:
            schema, footer = opened.schema_arrow, opened.metadata
    except (pa.ArrowException, OSError) as error:
        raise TraceError(f"{file}: not a readable Parquet file: {error}") from None
    check_schema(schema, str(file))
    first_row = 1
    for index in range(footer.num_row_groups):
        group = footer.row_group(index)
        piece = Piece(str(file), str(file), (index,), first_row, group.num_rows)
        yield Group(piece, _bounds(group))
        first_row += group.num_rows


def _bounds(group: Any) -> dict[str, tuple[Any, Any]]:
    known = {}
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema in ("run", "process", "position"):
            found = column.statistics
            if found is not None and found.has_min_max and not found.null_count:
                known[column.path_in_schema] = (found.min, found.max)
    return known


def items(source: Source, rows_each: int) -> list[Item] | None:
    """The trace cut between runs into items of about that many rows, each with its manifests;
    None if that is not to be had, or would mean reading too much too often."""
    pieces = (*source.lines, *(group.piece for group in source.groups))
    manifests = tuple(source.manifests[name] for name in sorted(source.manifests))
    if source.rows <= rows_each:
        return [Item(pieces, runs=manifests)]
    if source.lines or not all(group.runs for group in source.groups):
        return None
    cuts = _cuts(source, rows_each)
    found = []
    for low, high in zip(cuts, [*cuts[1:], None], strict=True):
        mine = tuple(
            group.piece
            for group in source.groups
            if group.bounds["run"][1] >= low and (high is None or group.bounds["run"][0] < high)
        )
        described = tuple(m for m in manifests if m.run >= low and (high is None or m.run < high))
        found.append(Item(mine, low, high, described))
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
