"""One block of a huge run, judged with what little of its neighbours has to do with it.

The rows between a block's two cuts are its own, and so are the messages sent in them. Beside them
it reads what is between the outer cuts of its borders. That is enough if at every border

- what was sent before the first of the three cuts is delivered before the middle one,
- what was sent between these two is delivered before the last one,

as far as it ever is by a process that still goes on. Each block sees to it that its own rows and
its own messages are so; if not, the run is `Unhealthy`. Then a message of this block and another
one that could come before it somewhere and after it elsewhere are both in what it reads; and so is
all that leads from one of its messages to another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ordercast.pipeline.arrays import destinations_of, ints_of, kinds_of
from ordercast.pipeline.blocks.cutting import COLUMNS, Cut, Logs
from ordercast.pipeline.blocks.found import Asked, Found, Noted, Tied
from ordercast.pipeline.blocks.plan import Work
from ordercast.pipeline.huge.found import Name
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.huge.segments import WRONG
from ordercast.pipeline.kernels import block as b
from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.kernels import scan as s
from ordercast.pipeline.kernels.cycles import is_before, shortest_cycle
from ordercast.pipeline.kernels.doors import tie_block
from ordercast.pipeline.kernels.index import ADDRESSED, DELIVER, NEVER, SEND
from ordercast.pipeline.kernels.kernel import Bools, Ints
from ordercast.pipeline.kernels.run import PATIENCE
from ordercast.trace.verdicts import PROPERTIES

__all__ = ["judge_block"]

_LATE = "has messages that were delivered much later than others, or never by someone who goes on"
_CHAINED = ("kind", "origin", "number")
"""What the chains are made of, without which nothing can be asked."""
_DOORS_MOST = 1 << 16
"""Messages under way at a border."""


def judge_block(
    work: Work, up: Bools, properties: Collection[str], *, settled: bool, asked: Asked | None = None
) -> Found:
    """`up`: who has not crashed in the end; `settled`: the run has come to rest."""
    block = _Block(work, COLUMNS if asked is None else _CHAINED)
    if asked is None:
        block.check_messages()
        return block.judge(up, properties, settled=settled)
    tied = {
        name: block.tied(name, asked.same.get(name, []), with_cycle=name in asked.cycles)
        for name in {*asked.same, *asked.cycles}
    }
    delivered = asked.delivered is not None and block.has_delivered(*asked.delivered)
    return Found([], [], [], [], True, {}, tied, delivered)


class _Block:
    def __init__(self, work: Work, columns: Sequence[str]) -> None:
        self.logs = logs = Logs(work.stretches, columns)
        self.size = len(work.stretches)
        self.rows = int(logs.rows.sum())
        """Of the whole run: says whether it is worth compiling what all blocks need."""
        low, high = work.low, work.high
        before, self.low, after_low = (
            map(logs.cut, (low.before, low.at, low.after)) if low else [logs.start] * 3
        )
        self.before_high, self.high, self.after = (
            map(logs.cut, (high.before, high.at, high.after)) if high else [logs.end] * 3
        )
        table = logs.between(before, self.after)
        self.row = ints_of(table["row"], np.int64)
        process, number = ints_of(table["process"], np.int32), ints_of(table["number"], np.int64)
        origin, kind = ints_of(table["origin"], np.int32), kinds_of(table["kind"])
        self._check_rows(kind, process, origin, number, before, after_low)
        keep = (kind == SEND) | ((kind == DELIVER) & (number > before.sent[origin]))
        self.process, self.row = process[keep], self.row[keep]
        self.kind, self.origin, self.number = kind[keep], origin[keep], number[keep]
        table = table.filter(pa.array(keep))
        if "position" in columns:
            self.position = ints_of(table["position"], np.int64)
        self._read(table)

    def _check_rows(
        self, kind: Ints, process: Ints, origin: Ints, number: Ints, before: Cut, after_low: Cut
    ) -> None:
        own = (self.row >= self.low.row[process]) & (self.row < self.high.row[process])
        past = np.where(
            self.row < after_low.row[process], before.sent[origin], self.low.sent[origin]
        )
        if (own & (kind == DELIVER) & (number <= past)).any():
            raise Unhealthy(_LATE)

    def _read(self, table: pa.Table) -> None:
        everyone = np.ones(len(table), np.bool_)
        dest_start, dest = np.zeros(len(table) + 1, np.int64), np.empty(0, np.int32)
        if "destinations" in table.column_names:
            lists = table["destinations"]
            if sum(chunk.flatten().null_count for chunk in lists.chunks):
                raise Unhealthy(WRONG[s.BROKEN])
            everyone, dest_start, dest = destinations_of(lists)
        if len(dest) and not 0 <= dest.min() <= dest.max() < self.size:
            raise Unhealthy("has messages for processes that its manifest does not name")
        self.low_row, self.high_row = self._rows_before(self.low), self._rows_before(self.high)
        (
            self.starts, self.sent, self.base, self.message, self.origins, self.numbers, self.turn,
            self.first, self.marks, counted,
        ) = b.read_block.for_rows(self.rows)(
            self.size, self.process, self.kind, self.origin, self.number, everyone.copy(),
            dest_start, dest.copy(), self.low_row, self.high_row,
        )  # fmt: skip
        self.delivered, self.repeated = counted.tolist()
        if len(self.origins) > len(self.sent):
            raise Unhealthy("has deliveries of messages that were never sent")

    def _rows_before(self, cut: Cut) -> Ints:
        """Where a cut is among each process's rows that are here."""
        starts = np.searchsorted(self.process, np.arange(self.size + 1))
        return np.array(
            [
                begin + np.searchsorted(self.row[begin:end], cut.row[p])
                for p, (begin, end) in enumerate(pairwise(starts.tolist()))
            ]
        )

    def check_messages(self) -> None:
        """What is not delivered here never will be: by processes whose logs are at their ends."""
        mine, ends = self.turn == b.OWN, self.logs.rows
        open_ = (self.marks & ADDRESSED != 0) & (self.first == NEVER) & mine[:, None]
        sooner = self.numbers <= self.before_high.sent[self.origins]
        over = np.where(sooner[:, None], self.high.row >= ends, self.after.row >= ends)
        if (open_ & ~over).any():
            raise Unhealthy(_LATE)

    def judge(self, up: Bools, properties: Collection[str], *, settled: bool) -> Found:
        wanted = np.array([name in properties for name in PROPERTIES])
        counts = np.zeros((11, 3), np.int64)
        witness = np.full((11, f.WIDTH), -1, np.int64)
        both = np.zeros(self.size, np.int64)
        hits, exact, two = b.judge_block.for_rows(self.rows)(
            self.kind, self.starts, self.sent, self.base, self.message, self.origins, self.numbers,
            self.turn, self.first, self.marks.copy(), up, self.delivered, self.repeated, settled,
            wanted, PATIENCE, counts, witness, both,
        )  # fmt: skip
        knotted = [name for name in ("total_acyclic", "synchronous") if name in properties]
        return Found(
            counts.tolist(),
            [self._noted(one) if one[f.PROCESS] >= 0 else None for one in witness],
            [
                (name, p, int(self.position[row]) if row >= 0 else None, self._name(m))
                for name, p, row, m in hits.tolist()
                if wanted[name]
            ],
            both.tolist(),
            bool(exact),
            {
                name: [
                    (self._name(m), p) for which, m, p in two.tolist() if PROPERTIES[which] == name
                ]
                for name in knotted
            },
            {name: self.tied(name, []) for name in knotted},
        )

    def tied(self, name: str, same: list[list[Name]], *, with_cycle: bool = False) -> Tied:
        """`same`: doors that lie in one knot."""
        loops = [[*those, those[0]] for those in same]
        more = np.array([self._index[one] for loop in loops for one in loop], np.int32)
        chains = tie_block.for_rows(self.rows)(
            self.kind, self.message, self.starts, self.first, self.low_row, self.high_row,
            name == "synchronous", more, np.cumsum([0, *map(len, loops)]),
        )  # fmt: skip
        entries, begin, earliest, latest, knot, doors, sides, ways, closed = chains
        if len(doors) > _DOORS_MOST:
            raise Unhealthy("has too many messages under way at a time")
        place = {m: i for i, m in enumerate(doors.tolist())}
        ends = [
            (place[entries[first]], place[entries[last - 1]]) if first < last else None
            for first, last in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True)
        ]
        cycle: list[tuple[Name, int]] = []
        if with_cycle and closed:
            knot = np.where(np.isin(knot, knot[doors]), 0, knot)
            cycle = self._cycle(entries, begin, earliest, latest, knot)
        return Tied(
            [self._name(m) for m in doors.tolist()], sides.tolist(), knot[doors].tolist(),
            [(one, other) for one, other in ways.tolist()], ends,
            np.diff(begin).tolist(), int(closed), cycle,
        )  # fmt: skip

    def _cycle(
        self, entries: Ints, begin: Ints, earliest: Ints, latest: Ints, knot: Ints
    ) -> list[tuple[Name, int]]:
        nothing = np.zeros(len(self.origins), np.bool_)
        found = shortest_cycle.for_rows(self.rows)(
            entries, begin, earliest, latest, self.origins, self.numbers, nothing, knot, PATIENCE
        ).tolist()
        following = [*found[1:], *found[:1]]
        return [
            (self._name(m), int(is_before(earliest, latest, m, n)))
            for m, n in zip(found, following, strict=True)
        ]

    @cached_property
    def _index(self) -> dict[Name, int]:
        names = zip(self.origins.tolist(), self.numbers.tolist(), strict=True)
        return {name: m for m, name in enumerate(names)}

    def has_delivered(self, process: int, name: Name) -> bool:
        return bool(self.first[self._index[name], process] != NEVER)

    def _name(self, m: int) -> Name:
        return int(self.origins[m]), int(self.numbers[m])

    def _noted(self, one: Ints) -> Noted:
        process, row, m, n, other, link, missing, earlier, grade = one.tolist()
        return Noted(
            grade, process, int(self.position[row]) if row >= 0 else None, self._name(m),
            self._name(n) if n >= 0 else None, other, link, bool(missing),
            int(self.position[earlier]) if earlier >= 0 else None,
            bool(missing and self.turn[m] == b.LATE),
        )  # fmt: skip
