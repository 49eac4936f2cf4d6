"""Messages that reach too far for any block, and are set apart: those that someone got much later
than others, or skipped though it went on, or that nobody sent.

As long as they are few, all their rows can be shown to every block. What a block cannot see is who
knew of them when; so that is found first, block after block from where each was sent, until all
know of it that ever will. Mostly that is so within its own block.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from ordercast.pipeline.blocks.block import APART_MOST, LATE, Block
from ordercast.pipeline.blocks.found import Reads, Seen
from ordercast.pipeline.blocks.plan import Work
from ordercast.pipeline.blocks.sketches import FAR, Log
from ordercast.pipeline.blocks.view import NOTHING, Apart, Learnt, Rows, View
from ordercast.pipeline.huge.attempt import Each
from ordercast.pipeline.huge.found import Name
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.kernels.index import DELIVER, OTHER, SEND
from ordercast.pipeline.kernels.kernel import Ints

__all__ = ["apart_of", "concerned", "view_of"]

_ROUNDS = 16
"""Blocks that it may take until all know of a message."""


class _Followed(msgspec.Struct, frozen=True):
    learnt: list[Learnt]
    upto: list[int]
    """Rows of each log within which that is all."""


def apart_of(
    strange: Iterable[Seen],
    reads: Sequence[Reads],
    works: Sequence[Work],
    logs: Sequence[Log],
    each: Each,
) -> Apart:
    """in: what blocks have seen of these messages; for each block what it reads. Raises `Unhealthy`
    if there are too many, or it takes too long."""
    seen = {(one.process, one.row): one for one in strange}
    names = {one.message for one in seen.values()}
    if len(names) > APART_MOST:
        raise Unhealthy(LATE)

    def look(one: tuple[Work, set[Name]]) -> list[Seen]:
        return Block(one[0], NOTHING).seen(one[1])

    there = [
        {(o, n) for o, n in names if one.begin[o] < n <= one.end[o]} for one in reads
    ]  # where they were not strange
    some = [(work, those) for work, those in zip(works, there, strict=True) if those]
    for answer in each(look, some, list[Seen]):
        seen |= {(one.process, one.row): one for one in answer}
    rows = list(seen.values())
    ways = _Ways(rows, works, logs, each)
    ends = np.array([one.end for one in reads])
    sent = [one.message for one in rows if one.kind == SEND]
    ways.follow({(o, n): int(np.searchsorted(ends[:, o], n)) for o, n in sent})
    return Apart(rows, ways.learnt)


@dataclass
class _Ways:
    """How messages become known."""

    seen: Sequence[Seen]
    works: Sequence[Work]
    logs: Sequence[Log]
    each: Each
    since: dict[tuple[Name, int], int] = field(default_factory=dict)
    """The row from which a process knows of a message."""

    @property
    def learnt(self) -> list[Learnt]:
        return [Learnt(p, row, name) for (name, p), row in self.since.items()]

    def follow(self, at: dict[Name, int]) -> None:
        """in: the block in which each message was sent"""
        for _ in range(_ROUNDS):
            if not at:
                return
            there: dict[int, set[Name]] = defaultdict(set)
            for name, block in at.items():
                there[block].add(name)
            apart, at = Apart(self.seen, self.learnt), {}
            for i, found in zip(there, self._ask(there, apart), strict=True):
                for one in found.learnt:
                    self.since[one.message, one.process] = one.row
                at |= {
                    name: i + 1 for name in there[i] if self._goes_on(name, np.array(found.upto))
                }
        if at:
            raise Unhealthy(f"{LATE}, and of which some processes hear after a long time")

    def _ask(self, there: dict[int, set[Name]], apart: Apart) -> list[_Followed]:
        def ask(one: tuple[Work, Collection[Name]]) -> _Followed:
            block = Block(one[0], apart)
            return _Followed(block.learnt(one[1]), block.after.row.tolist())

        return self.each(ask, [(self.works[i], those) for i, those in there.items()], _Followed)

    def _goes_on(self, name: Name, upto: Ints) -> bool:
        """Does anyone who does not know of it hear from one who does, after these rows?"""
        know = np.array([(name, p) in self.since for p in range(len(self.logs))])
        for p, log in enumerate(self.logs):
            look = int(np.searchsorted(log.ends, upto[p], side="right"))
            if not know[p] and look < len(log.ends) and (log.least[look, know] < FAR).any():
                return True
        return False


def concerned(reads: Reads, apart: Apart, logs: Sequence[Log]) -> bool:
    """Has any of these messages to do with a block? Not if all their rows are after what it reads,
    or before that, and nobody to whom it is addressed and who still goes on lacks it."""
    rows: dict[Name, list[Seen]] = defaultdict(list)
    for one in apart.seen:
        rows[one.message].append(one)
    return any(_concerned(reads, those, logs) for those in rows.values())


def _concerned(reads: Reads, those: Sequence[Seen], logs: Sequence[Log]) -> bool:
    if all(one.row >= reads.last[one.process] for one in those):
        return False
    if any(one.row >= reads.first[one.process] for one in those):
        return True
    sent = [one.readers for one in those if one.kind == SEND]
    readers = set().union(*(range(len(logs)) if one is None else one for one in sent))
    lacking = readers - {one.process for one in those if one.kind == DELIVER}
    return any(reads.first[p] < logs[p].rows for p in lacking)


def view_of(apart: Apart, logs: Sequence[Log]) -> View:
    """These messages by themselves; and one row more for everyone who has a log."""
    there = [Seen(p, -1, -1, OTHER, p, 0, None) for p, log in enumerate(logs) if log.rows]
    rows = Rows.apart_from(Apart([*there, *apart.seen], apart.learnt)).in_order()
    rows.apart[:] = False
    size, total = len(logs), sum(log.rows for log in logs)
    return View(rows, size, np.full(size, -1), np.full(size, FAR), total)
