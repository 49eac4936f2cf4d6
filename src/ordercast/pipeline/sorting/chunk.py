"""A part of the sorted messages as flat arrays, which is what the walk runs over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.sorting.columns import Columns
from ordercast.pipeline.sorting.walk import compare_stamps, walk

__all__ = ["Chunk", "Compared", "chunk_of"]


class Compared(NamedTuple):
    asking: Ints
    """Rows that know a message of an earlier part, whose stamp only Spark can find."""
    origins: list[str]
    """Of the messages that they know."""
    numbers: Ints
    compared: int
    first: tuple[int, int] | None
    """The first row whose stamp is wrong, and the row that it contradicts."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Entries as in `walk`; slots are numbered group by group."""

    starts: Ints
    slots: Ints
    values: Ints
    own: Ints
    numbers: Ints
    names: list[str]
    """Of the origins."""
    codes: Ints
    """For each slot, the origin's place among the names."""
    first_slots: Ints
    """For each group the first of its slots, and the end."""

    def walk(self, known: Mapping[str, int]) -> tuple[Bools, dict[str, int]]:
        """Which messages come too late, if `known` is what the first group knows already; and
        what the last group knows in the end."""
        highest = np.zeros(self.first_slots[-1], np.int64)
        for slot in range(self.first_slots[1]):
            highest[slot] = known.get(self.names[self.codes[slot]], 0)
        late = walk.for_rows(len(self.values))(*self._entries, highest)
        last = range(self.first_slots[-2], self.first_slots[-1])
        grown = {self.names[self.codes[slot]]: int(highest[slot]) for slot in last}
        return late, (grown if len(self.first_slots) > 2 else dict(known) | grown)

    def compare(self) -> Compared:
        """Each stamp with those of the messages that it knows."""
        by_name = np.lexsort((self.numbers, self.own))
        last = np.full(self.first_slots[-1], -1)
        compare = compare_stamps.for_rows(len(self.values))
        asking, asked, wanted, told = compare(*self._entries, by_name, last)
        names = [self.names[self.codes[slot]] for slot in asked.astype(np.int64)]
        compared, row, contradicted = map(int, told)
        first = None if row < 0 else (row, contradicted)
        return Compared(asking.astype(np.int64), names, wanted, compared, first)

    def name(self, row: int) -> str:
        """The origin of a message."""
        return str(self.names[self.codes[self.own[row]]])

    @property
    def _entries(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        return self.starts, self.slots, self.values, self.own, self.numbers


def chunk_of(table: pa.Table, columns: Columns) -> Chunk:
    """in: the columns of `Columns`, at least one row, every group's rows together"""
    table = table.combine_chunks()
    groups = _groups(table, columns)
    numbers = table[columns.number].to_numpy().astype(np.int64)
    stamp = table[columns.stamp].combine_chunks()
    if pa.types.is_map(stamp.type):
        return _of_maps(stamp, table[columns.origin].cast(pa.string()), numbers, groups)
    return _of_lists(stamp, table[columns.origin].to_numpy().astype(np.int64), numbers, groups)


def _groups(table: pa.Table, columns: Columns) -> Ints:
    """0, 1, … for each row's group, in the order in which they come."""
    if columns.group is None:
        return np.zeros(len(table), np.int64)
    codes = table[columns.group].combine_chunks().dictionary_encode().indices
    return np.asarray(codes.to_numpy(), np.int64)


def _of_lists(stamp: pa.ListArray, origins: Ints, numbers: Ints, groups: Ints) -> Chunk:
    starts = stamp.offsets.to_numpy().astype(np.int64)
    starts -= starts[0]
    lengths = np.diff(starts)
    width = int(lengths.max())
    values = stamp.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    values[starts[:-1] + origins] = numbers
    places = np.arange(len(values)) - np.repeat(starts[:-1], lengths)
    slots = np.repeat(groups * width, lengths) + places
    count = int(groups.max()) + 1
    return Chunk(
        *(starts, slots, values, groups * width + origins, numbers),
        names=[str(place) for place in range(width)],
        codes=np.tile(np.arange(width), count),
        first_slots=np.arange(count + 1) * width,
    )


def _of_maps(stamp: pa.MapArray, origins: pa.Array, numbers: Ints, groups: Ints) -> Chunk:
    """Any names, in any order, and perhaps without the message's own."""
    offsets = stamp.offsets.to_numpy().astype(np.int64)
    inner = slice(int(offsets[0]), int(offsets[-1]))
    keys = stamp.keys[inner].cast(pa.string())
    words = pa.concat_arrays([keys, *_arrays(origins)]).dictionary_encode()
    names = words.dictionary.to_pylist()
    codes = words.indices.to_numpy().astype(np.int64)
    theirs, own = codes[: len(keys)], codes[len(keys) :]
    rows = np.repeat(np.arange(len(numbers)), np.diff(offsets))
    others = theirs != own[rows]
    rows = np.concatenate((rows[others], np.arange(len(numbers))))
    counts = stamp.items[inner].to_numpy(zero_copy_only=False).astype(np.int64)
    values = np.concatenate((counts[others], numbers))
    pairs = groups[rows] * len(names) + np.concatenate((theirs[others], own))
    known, slots = np.unique(pairs, return_inverse=True)
    order = np.lexsort((slots, rows))
    count = int(groups.max()) + 1
    return Chunk(
        starts=np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(numbers))))),
        slots=slots[order],
        values=values[order],
        own=slots[len(slots) - len(numbers) :],
        numbers=numbers,
        names=names,
        codes=known % len(names),
        first_slots=np.searchsorted(known, np.arange(count + 1) * len(names)),
    )


def _arrays(column: pa.ChunkedArray | pa.Array) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]
