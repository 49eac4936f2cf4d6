"""How far every origin of every group has come: all that must be remembered for ever.

One ledger is for one bucket of groups. Kernels want slots (one origin in one group) as numbers from
0; those are given anew for every batch, and only what cannot be guessed is kept: slots that have
begun, and the intervals of numbers that were given up or set aside.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ordercast.pipeline.kernels.held import Ground, Messages
from ordercast.pipeline.kernels.kernel import Ints
from ordercast.pipeline.streaming.form import Form
from ordercast.pipeline.streaming.messages import Parsed

__all__ = ["Intervals", "Ledger", "Numbered", "intervals", "new_ledger"]

_DIRECT = 1 << 16
"""Origins that are integers below it are taken as they are."""


class Intervals(NamedTuple):
    """Of numbers, each of a slot; sorted, and none touches the next."""

    slot: Ints
    low: Ints
    high: Ints

    def first(self, slots: int) -> Ints:
        """Where each slot's begin, and the end."""
        return np.searchsorted(self.slot, np.arange(slots + 1))

    def rows(self) -> list[tuple[int, int, int]]:
        return list(zip(*(column.tolist() for column in self), strict=True))

    def with_more(self, more: list[tuple[int, int, int]]) -> Intervals:
        pairs = sorted([*self.rows(), *more])
        joined: list[list[int]] = []
        for slot, low, high in pairs:
            if joined and joined[-1][0] == slot and low <= joined[-1][2] + 1:
                joined[-1][2] = max(high, joined[-1][2])
            else:
                joined.append([slot, low, high])
        return intervals(joined)

    def without(self, less: Intervals) -> Intervals:
        """What is in these and not in the others."""
        kept: list[list[int]] = []
        for slot, low, high in self.rows():
            for other, lower, upper in sorted(less.rows()):
                if other == slot and lower <= high and upper >= low:
                    if lower > low:
                        kept.append([slot, low, lower - 1])
                    low = upper + 1
            if low <= high:
                kept.append([slot, low, high])
        return intervals(kept)

    def find(self, slot: int, number: int) -> bool:
        at = bisect_right(range(len(self.slot)), (slot, number), key=self._begin) - 1
        return at >= 0 and bool(self.slot[at] == slot and self.high[at] >= number)

    def _begin(self, at: int) -> tuple[int, int]:
        return int(self.slot[at]), int(self.low[at])


def intervals(rows: list[list[int]]) -> Intervals:
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Intervals(*(np.ascontiguousarray(table[:, column]) for column in range(3)))


@dataclass(frozen=True)
class Ledger:
    groups: pa.Table
    """The columns of `Form.group`."""
    position: Ints
    """By group."""
    slot_group: Ints
    slot_origin: pa.Array
    done: Ints
    """By slot."""
    missing: Intervals = field(default_factory=lambda: intervals([]))
    """Given up; whoever comes yet is late."""
    settled: Intervals = field(default_factory=lambda: intervals([]))
    """Set aside, and not reached yet."""
    timer_ms: int = -1
    """When the next timer rings."""

    def number(self, parsed: Parsed, form: Form) -> Numbered:
        """Everything as the kernels want it."""
        keys = list(form.group)
        together = pa.concat_tables([self.groups, parsed.rows.select(keys)])
        group, groups = _codes(together)
        known = len(self.groups)
        origin, origins = _origin_codes(self.slot_origin, parsed.origin, parsed.entry_origin)
        ends = np.cumsum([len(self.slot_origin), len(parsed.origin)])
        row_group = group[known:]
        entry_group = np.repeat(row_group, np.diff(parsed.start))
        wide = np.concatenate((self.slot_group, row_group, entry_group))
        wide *= len(origins)
        wide += origin
        slot, place = _slots(wide, len(groups) * len(origins))
        old, own, entry = np.split(slot, ends)
        done = np.full(len(place), form.start - 1, np.int64)
        done[old] = self.done
        position = np.zeros(len(groups), np.int64)
        position[:known] = self.position
        return Numbered(
            form=form, ledger=self, groups=groups, origins=origins, place=place, done=done,
            position=position, missing=_moved(self.missing, old), settled=_moved(self.settled, old),
            messages=Messages(
                slot=_frozen(own), number=_frozen(parsed.number), group=_frozen(row_group),
                start=_frozen(parsed.start), entry_slot=_frozen(entry),
                entry_number=_frozen(parsed.entry_number),
            ),
        )  # fmt: skip


@dataclass
class Numbered:
    """A ledger in which slots have numbers, and messages that have them too."""

    form: Form
    ledger: Ledger
    groups: pa.Table
    origins: pa.Array
    place: Ints
    """Of each slot: its group times the number of origins, plus its origin."""
    done: Ints
    position: Ints
    missing: Intervals
    settled: Intervals
    messages: Messages

    def ground(self, *, sorted_too: bool = False) -> Ground:
        """For the kernels, which change it."""
        by_number = np.empty(0, np.int64)
        upcoming = np.zeros(len(self.done), np.int64)
        if sorted_too:
            by_number = np.lexsort((self.messages.number, self.messages.slot))
            slots = self.messages.slot[by_number]
            upcoming = np.searchsorted(slots, np.arange(len(self.done)))
        first = self.settled.first(len(self.done))
        return Ground(
            self.done, self.position, _frozen(first), _frozen(self.settled.low),
            _frozen(self.settled.high), _frozen(by_number), upcoming,
        )  # fmt: skip

    def name(self, slot: int, low: int, high: int) -> str:
        """Numbers of an origin, for people."""
        origin = self.origins[int(self.place[slot]) % len(self.origins)].as_py()
        return f"{origin}:{low}" if low == high else f"{origin}:{low}..{high}"

    def kept(self, *, timer_ms: int) -> Ledger:
        """The ledger as it is now."""
        beyond = self.settled.high > self.done[self.settled.slot]
        settled = Intervals(*(column[beyond] for column in self.settled))
        keep = self.done >= self.form.start
        keep[settled.slot] = True
        group_of = self.place // len(self.origins) if len(self.origins) else self.place
        used = self.position > 0
        used[group_of[keep]] = True
        new_slot, new_group = np.cumsum(keep) - 1, np.cumsum(used) - 1
        kept = np.flatnonzero(keep)
        groups = self.groups if used.all() else self.groups.filter(pa.array(used))
        return Ledger(
            groups=groups,
            position=self.position[used],
            slot_group=new_group[group_of[kept]],
            slot_origin=self.origins.take(pa.array(self.place[kept] % max(len(self.origins), 1))),
            done=self.done[kept],
            missing=_moved(self.missing, new_slot),
            settled=_moved(settled, new_slot),
            timer_ms=timer_ms,
        )


def new_ledger(form: Form, schema: pa.Schema) -> Ledger:
    nothing = np.empty(0, np.int64)
    fields = [schema.field(name) for name in form.group]
    origin = pa.array([], pa.string() if form.named else pa.int64())
    return Ledger(pa.schema(fields).empty_table(), nothing, nothing, origin, nothing)


def _codes(table: pa.Table) -> tuple[Ints, pa.Table]:
    """A number for each row, the same for the same values, in order of first appearance; and the
    rows that came first."""
    codes = np.zeros(len(table), np.int64)
    for at, column in enumerate(table.columns):
        encoded = pa.concat_arrays(column.chunks).dictionary_encode()
        mixed = np.asarray(encoded.indices).astype(np.int64)
        if at:
            mixed += codes * len(encoded.dictionary)
            mixed = np.asarray(pa.array(mixed).dictionary_encode().indices).astype(np.int64)
        codes = mixed
    seen = np.empty(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    seen[codes[::-1]] = np.arange(len(codes))[::-1]  # the last one written stays: the first row
    return codes, table.take(pa.array(seen)).combine_chunks()


def _origin_codes(*columns: pa.Array) -> tuple[Ints, pa.Array]:
    together = pa.concat_arrays(columns)
    if pa.types.is_integer(together.type):
        values = np.asarray(together)
        if not len(values):
            return values, together
        if values.min() >= 0 and (top := int(values.max())) < _DIRECT:
            return values, pa.array(np.arange(top + 1))
    encoded = together.dictionary_encode()
    return np.asarray(encoded.indices).astype(np.int64), encoded.dictionary


def _slots(wide: Ints, room: int) -> tuple[Ints, Ints]:
    """The slot of each, and what each slot stands for: as it is, if that is not mostly empty."""
    if room <= max(4096, 4 * len(wide)):
        return wide, np.arange(room)
    encoded = pa.array(wide).dictionary_encode()
    return np.asarray(encoded.indices).astype(np.int64), np.asarray(encoded.dictionary)


def _moved(old: Intervals, slot: Ints) -> Intervals:
    if not len(old.slot):
        return old
    table = sorted(zip(slot[old.slot].tolist(), old.low.tolist(), old.high.tolist(), strict=True))
    return intervals([list(row) for row in table])


def _frozen(array: Ints) -> Ints:
    """The compiler makes a difference between arrays that can be written to and others: so none of
    what goes in can."""
    array = np.ascontiguousarray(array, np.int64)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array
