"""One block of a huge run, judged with what little of its neighbours has to do with it.

The rows between a block's two cuts are its own, and so are the messages sent in them. Beside them
it reads what is between the outer cuts of its borders. That is enough if at every border

- what was sent before the first of the three cuts is delivered before the middle one,
- what was sent between these two is delivered before the last one,

as far as it ever is by a process that still goes on. Each block sees to it that its own rows and
its own messages are so; those that are not must be set apart (`apart`). Then a message of this
block and another one that could come before it somewhere and after it elsewhere are both in what it
reads; and so is all that leads from one of its messages to another.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ordercast.pipeline.blocks.cutting import COLUMNS, Logs
from ordercast.pipeline.blocks.found import Reads, Seen
from ordercast.pipeline.blocks.plan import Work
from ordercast.pipeline.blocks.view import Apart, Learnt, Rows, View, among
from ordercast.pipeline.huge.found import Name
from ordercast.pipeline.huge.groups import Unhealthy
from ordercast.pipeline.kernels import block as b
from ordercast.pipeline.kernels.far import spread
from ordercast.pipeline.kernels.index import ADDRESSED, DELIVER, NEVER, SEND
from ordercast.pipeline.kernels.kernel import Bools

__all__ = ["APART_MOST", "LATE", "Block"]

APART_MOST = 2048
"""Messages that may be set apart."""
LATE = "has messages that were delivered much later than others, or never by someone who goes on"
_CHAINED = ("kind", "origin", "number")
"""What the chains are made of, without which nothing can be asked."""


class Block:
    def __init__(self, work: Work, apart: Apart, *, chains_only: bool = False) -> None:
        self._last, self._apart = work.last, apart
        self._logs = logs = Logs(work.stretches, work.last, _CHAINED if chains_only else COLUMNS)
        low, high = work.low, work.high
        self.before, self._low, self._after_low = (
            map(logs.cut, (low.before, low.at, low.after)) if low else [logs.start] * 3
        )
        self._before_high, self.high, self.after = (
            map(logs.cut, (high.before, high.at, high.after)) if high else [logs.end] * 3
        )
        self._rows = rows = Rows.of(logs.between(self.before, self.after))
        new = (rows.number > self.before.sent[rows.origin]) & (
            rows.number <= work.last[rows.origin]
        )
        mine = rows.where((rows.kind == SEND) | ((rows.kind == DELIVER) & new))
        self.view = View(
            mine.with_apart(apart), len(work.stretches), self._low.row, self.high.row,
            int(logs.rows.sum()),
        )  # fmt: skip

    @property
    def reads(self) -> Reads:
        return Reads(
            self.before.sent.tolist(), self.high.sent.tolist(),
            self.before.row.tolist(), self.after.row.tolist(),
        )  # fmt: skip

    def strange(self) -> list[Seen]:
        """What is here of messages that should be set apart, and are not. There are none if what
        this block reads is enough for it."""
        rows, view = self._rows, self.view
        unfit = self._unfit()
        forged = np.flatnonzero(view.turn[len(view.sent) :] == b.OWN) + len(view.sent)
        open_ = np.flatnonzero(self._open())
        if max(int(unfit.sum()) // view.size, len(forged), len(open_)) > APART_MOST:
            raise Unhealthy(LATE)
        names = {*view.names(forged), *view.names(open_)}
        names.update(zip(rows.origin[unfit].tolist(), rows.number[unfit].tolist(), strict=True))
        return self.seen(names - self._apart.names)

    def _unfit(self) -> Bools:
        """Deliveries of messages that were sent too long ago, or not at all."""
        rows, at = self._rows, self._rows.process
        own = (rows.row >= self._low.row[at]) & (rows.row < self.high.row[at])
        past = np.where(
            rows.row < self._after_low.row[at],
            self.before.sent[rows.origin], self._low.sent[rows.origin],
        )  # fmt: skip
        strange = (rows.number <= past) | (rows.number > self._last[rows.origin])
        unfit: Bools = own & (rows.kind == DELIVER) & strange
        return unfit

    def _open(self) -> Bools:
        """Messages that are not delivered here, by processes whose logs go on."""
        view, ends = self.view, self._logs.rows
        never = (view.marks & ADDRESSED != 0) & (view.first == NEVER)
        sooner = view.numbers <= self._before_high.sent[view.origins]
        over = np.where(sooner[:, None], self.high.row >= ends, self.after.row >= ends)
        open_: Bools = (view.turn == b.OWN) & (never & ~over).any(axis=1)
        return open_

    def seen(self, names: Collection[Name]) -> list[Seen]:
        """A `receive` row names a message as well, and says nothing of it."""
        rows = self._rows
        told = (rows.kind == SEND) | (rows.kind == DELIVER)
        return rows.seen(told & among(rows, names)) if names else []

    def learnt(self, names: Collection[Name]) -> list[Learnt]:
        """Who gets to know of these messages here, which are set apart, or did before. What is set
        apart may become known later on, too; but perhaps not first by what is seen of it here."""
        view, those = self.view, sorted(names)
        since = spread.for_rows(view.total)(
            view.rows.kind, view.message, view.starts, view.sent, view.first,
            np.array([view.index[name] for name in those], np.int32),
        )  # fmt: skip
        if len(since) < len(those):
            raise Unhealthy("has messages that were delivered before they were sent")
        learnt = [
            Learnt(p, int(view.rows.row[since[i, p]]), those[i])
            for i, p in np.argwhere(since != NEVER).tolist()
        ]
        return [one for one in learnt if one.row < self.after.row[one.process]]
