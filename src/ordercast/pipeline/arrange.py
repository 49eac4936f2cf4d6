"""A huge run whose rows lie anyhow, put into the order in which it can be judged.

In two steps, each row is read and written once in each: *scatter* deals the rows of some row groups
out by process and stretch of positions; *settle* puts everything of a stretch into place. What goes
from one to the other are Arrow files in a directory that every task can reach, so nothing passes
through Spark, which would take longer than all the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ordercast.pipeline.arrays import ints_of
from ordercast.pipeline.huge import Each, Unhealthy
from ordercast.pipeline.kernels.kernel import Ints
from ordercast.pipeline.rows import Piece, load
from ordercast.pipeline.source import Group
from ordercast.trace.parquet import EVERYONE, ROW_GROUP_ROWS, arrow_schema

__all__ = ["arrange"]

STRETCH_ROWS = 1 << 19
"""About how many rows a task puts in order at a time."""
_PLACES_MOST = 1 << 31
"""Of one process: as many stretches can be told apart if footers do not say where positions end."""
_MOVED = ("position", "kind", "origin", "number")
"""And the destinations, if there are any."""
_CHEAP = {
    "compression": None,
    "use_dictionary": ["kind"],
    "column_encoding": dict.fromkeys(("position", "number"), "DELTA_BINARY_PACKED"),
    "write_statistics": ["process"],
}
"""To be read once or twice, and thrown away."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Stretches:
    """Which stretch a row belongs to: its process, and its position divided by a power of two."""

    least: int
    bits: int
    places: int
    """In each process's log."""

    @classmethod
    def of(cls, groups: Sequence[Group]) -> _Stretches:
        """Positions with wide holes (times, say) make stretches as much wider."""
        bounds = [(g.bounds.get("process"), g.bounds.get("position")) for g in groups]
        known = [(*process, *position) for process, position in bounds if process and position]
        width = (STRETCH_ROWS - 1).bit_length()
        if len(known) < len(bounds):
            return cls(0, width, _PLACES_MOST)
        first, last, least, most = zip(*known, strict=True)
        rows = sum(group.piece.rows for group in groups)
        span, processes = max(most) - min(least) + 1, max(last) - min(first) + 1
        bits = width + max(span * processes // max(rows, 1), 1).bit_length() - 1
        return cls(min(least), bits, ((span - 1) >> bits) + 1)

    def of_rows(self, process: Ints, position: Ints) -> Ints:
        place = np.minimum((position - self.least) >> self.bits, self.places - 1)
        stretch: Ints = process * self.places + place
        return stretch

    def process(self, stretch: int) -> int:
        return stretch // self.places


def arrange(groups: Sequence[Group], directory: Path, each: Each) -> list[Piece]:
    """Writes the run's events to Parquet files in a directory that every task can reach: row groups
    of one process each, in order.

    Raises `Unhealthy` if a row is broken: then it would be for nothing.
    """
    stretches = _Stretches.of(groups)
    shares = _shares([group.piece for group in groups], [group.piece.rows for group in groups])
    work = [(share, directory / f"{i}.arrow") for i, share in enumerate(shares)]

    def scatter(one: tuple[Sequence[Piece], Path]) -> list[tuple[int, int]]:
        return _scatter(*one, stretches)

    found = each(scatter, work, list[tuple[int, int]])
    rows: Counter[int] = Counter()
    batches: dict[int, list[tuple[Path, int]]] = {}
    for (_, file), held in zip(work, found, strict=True):
        for index, (stretch, many) in enumerate(held):
            rows[stretch] += many
            batches.setdefault(stretch, []).append((file, index))

    def settle(those: Sequence[int]) -> list[Piece]:
        return [piece for one in those for piece in _settle(one, batches[one], stretches)]

    order = sorted(rows)
    settled = each(settle, _shares(order, [rows[one] for one in order]), list[Piece])
    for _, file in work:
        file.unlink()
    return [piece for part in settled for piece in part]


def _shares(those: Sequence[T], rows: Iterable[int]) -> list[Sequence[T]]:
    """In parts with about as many rows as a stretch."""
    shares: list[list[T]] = []
    room = 0
    for one, many in zip(those, rows, strict=True):
        if room <= 0 or many > room:
            shares.append([])
            room = STRETCH_ROWS
        shares[-1].append(one)
        room -= many
    return list(shares)


def _scatter(pieces: Sequence[Piece], file: Path, stretches: _Stretches) -> list[tuple[int, int]]:
    """Writes a batch for each stretch; returns the stretches, and the rows of each."""
    events, bad = load(pieces)
    if len(bad):
        raise Unhealthy("has rows that cannot be used")
    events = events.combine_chunks()
    mine = stretches.of_rows(*(ints_of(events[name], np.int64) for name in ("process", "position")))
    # Numpy sorts numbers of 16 bits by counting them, in a sixth of the time.
    few = mine.astype(np.uint16) if mine.max(initial=0) < 1 << 16 else mine
    order = np.argsort(few, kind="stable")
    addressed = events["destinations"].null_count < len(events)
    moved = events.select(_MOVED + ("destinations",) * addressed).take(pa.array(order))
    mine = mine[order]
    edges = [0, *(np.flatnonzero(np.diff(mine)) + 1).tolist(), len(mine)]
    with pa.ipc.new_file(str(file), moved.schema) as writer:
        for begin, end in pairwise(edges):
            writer.write_table(moved.slice(begin, end - begin))
    return [(int(mine[begin]), end - begin) for begin, end in pairwise(edges)]


def _settle(
    stretch: int, batches: Sequence[tuple[Path, int]], stretches: _Stretches
) -> Iterator[Piece]:
    """Writes the file of a stretch, next to those that its rows come from."""
    found = pa.concat_tables([_batch(*one) for one in batches], promote_options="default")
    rows = found.unify_dictionaries().combine_chunks()
    rows = rows.take(pa.array(_in_order(ints_of(rows["position"], np.int64))))
    owner = pa.array(np.full(len(rows), stretches.process(stretch), np.int32))
    rows = rows.add_column(0, arrow_schema().field("process"), owner)
    file = batches[0][0].with_name(f"{stretch}.parquet")
    with pq.ParquetWriter(file, rows.schema, **_CHEAP) as writer:
        writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)
        if "destinations" not in rows.column_names:
            writer.add_key_value_metadata({EVERYONE: b"true"})
    for index, begin in enumerate(range(0, len(rows), ROW_GROUP_ROWS)):
        many = min(ROW_GROUP_ROWS, len(rows) - begin)
        yield Piece(str(file), str(file), (index,), begin + 1, many)


def _batch(file: Path, index: int) -> pa.Table:
    with pa.memory_map(str(file)) as mapped:
        return pa.Table.from_batches([pa.ipc.open_file(mapped).get_batch(index)])


def _in_order(position: Ints) -> Ints:
    """The order that sorts the positions. Mostly they have no holes, and need no sorting."""
    first = int(position.min())
    if int(position.max()) - first + 1 == len(position):
        order = np.full(len(position), -1)
        order[position - first] = np.arange(len(position))
        if (order >= 0).all():
            return order
    return np.argsort(position, kind="stable")
