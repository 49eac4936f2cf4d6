"""Who knew of the messages that are set apart: which messages are in the future of each.

Of a message x it is enough to know, for each process, the first of its regular messages that x
happened before: all that it sends later is in the future of x too. It learns of x by sending or
delivering it, or anything that is in its future; so what is found in one place may lead to more in
another, until nothing changes. Along the regular messages of a window, `kernels.window.knowing`
follows the trail; here it goes through the messages that are set apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ordercast.pipeline.huge.aside import NOWHERE, Aside
from ordercast.pipeline.huge.tally import Window
from ordercast.pipeline.kernels.kernel import Bools

__all__ = ["Knowledge"]

Followed = Mapping[int, Mapping[int, list[int]]]
"""By window, and by message, from which place on each origin's messages know of it."""


class Knowledge:
    def __init__(self, aside: Aside, windows: Sequence[Window]) -> None:
        self._aside = aside
        self._low = np.array([one.low for one in windows]).reshape(-1, aside.members)
        self._high = np.array([one.high for one in windows]).reshape(-1, aside.members)
        size = len(aside.names)
        self.since = np.full((size, aside.members), NOWHERE, np.int64)
        """Message × process: the place of the first regular message that knows of it."""
        self.future: Bools = np.zeros((size, size), np.bool_)
        """[x, y]: y is in the future of x."""
        self._tried: dict[tuple[int, int], list[int]] = {}
        """For a message and a window what was known when the window had been looked at."""
        # From here on a process knows of what it met.
        self._met = np.where(aside.delivered, aside.had_sent + 1, NOWHERE)
        mine = np.arange(size)
        sent = np.where(aside.sent, aside.sent_sent + 1, NOWHERE)
        self._met[mine, aside.origin] = np.minimum(self._met[mine, aside.origin], sent)
        self._met[~aside.sent] = NOWHERE
        self.since[:] = self._met
        self._beside = self._met_before()
        self._close()

    def _met_before(self) -> Bools:
        """[x, y]: the origin of y had sent or delivered x when it sent y."""
        aside = self._aside
        there = aside.at[:, aside.origin]
        own = aside.origin[:, None] == aside.origin[None, :]
        there = np.minimum(there, np.where(own, aside.sent_at[:, None], NOWHERE))
        before: Bools = (there < aside.sent_at[None, :]) & aside.sent[:, None] & aside.sent[None, :]
        np.fill_diagonal(before, val=False)
        return before

    def _close(self) -> None:
        """What follows from messages set apart that know of others."""
        aside = self._aside
        needs = aside.sent_had.copy()
        mine = np.arange(len(needs))
        needs[mine, aside.origin] = np.maximum(needs[mine, aside.origin], aside.sent_sent)
        while True:
            future = self._beside | self.future
            for x in range(len(needs)):
                future[x] |= aside.sent & (needs >= self.since[x]).any(axis=1)
            # Whoever met y when y knew of x: nothing new, unless that is by way of y alone.
            through = future.astype(np.float32) @ self._beside.astype(np.float32)
            future |= through > 0
            np.fill_diagonal(future, val=False)
            since = self.since.copy()
            for x in np.flatnonzero(future.any(axis=1)).tolist():
                since[x] = np.minimum(since[x], self._met[future[x]].min(axis=0))
            if (future == self.future).all() and (since == self.since).all():
                return
            self.future, self.since = future, since

    def to_follow(self, most: int = 1) -> dict[int, list[tuple[int, list[int]]]]:
        """By window, what to look for there, for each message up to so many windows."""
        asked: dict[int, list[tuple[int, list[int]]]] = {}
        for x in np.flatnonzero(self._aside.sent).tolist():
            known = self.since[x]
            first = np.flatnonzero((known <= self._high).any(axis=1))
            if not len(first):
                continue
            open_ = (self._low < np.minimum(self._high, known - 1)).any(axis=1)
            open_[: first[0]] = False
            told = known.tolist()
            those = [w for w in np.flatnonzero(open_).tolist() if self._tried.get((x, w)) != told]
            for w in those[:most]:
                asked.setdefault(w, []).append((x, told))
        return asked

    def learn(self, found: Followed) -> None:
        for w, messages in found.items():
            for x, known in messages.items():
                self._tried[x, w] = known
                self.since[x] = np.minimum(self.since[x], known)
        self._close()

    def follow(self, look: Callable[[dict[int, list[tuple[int, list[int]]]]], Followed]) -> None:
        """Looks into windows until nothing new is learnt: mostly one, for each message."""
        most = 1
        while asked := self.to_follow(most):
            self.learn(look(asked))
            most *= 2
