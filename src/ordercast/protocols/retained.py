"""Messages that are kept until everyone is known to have them, and what is known of everyone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import gt, itemgetter
from typing import Any

from ordercast.protocols.messages import MessageId
from ordercast.protocols.received import Received

__all__ = ["Retained"]


class Retained:
    def __init__(self, me: int, size: int) -> None:
        self.received = Received(size)
        self.items: list[dict[int, Any]] = [{} for _ in range(size)]
        """By origin and number."""
        self.known = [[0] * size for _ in range(size)]
        """known[j][k]: process j has all messages of k up to this number, as far as is known."""
        self.known[me] = self.received.counts
        self.forgotten = [0] * size
        self.kept_for = list(self.known)
        """The same, of those for whom anything is kept."""
        self._look_anew()

    def _look_anew(self) -> None:
        """In a large group, questions are asked far more often than answers change: what follows
        says, by origin, when there is no need to look at everyone."""
        size = len(self.known)
        self.laggard = [0] * size
        """All before this place in `kept_for` have more than what is forgotten."""
        self.stable = [0] * size
        """What `held_by` answered last."""
        self.short = [0] * size
        """So many have to get more before it may be another answer, at least."""

    def __getstate__(self) -> dict[str, Any]:
        """These say nothing about messages: a snapshot does without, and so does a comparison."""
        state = vars(self).copy()
        for name in ("laggard", "stable", "short"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._look_anew()

    def add(self, id: MessageId, item: Any) -> None:
        self.received.add(id)
        self.short[id.origin] -= 1
        self.items[id.origin][id.number] = item

    def counts(self) -> tuple[int, ...]:
        return tuple(self.received.counts)

    def learn(self, process: int, counts: Sequence[int]) -> list[int]:
        """Take another process's word for what it has; returns the origins that it has more of."""
        known = self.known[process]
        risen = list(compress(range(len(known)), map(gt, counts, known)))
        for origin in risen:
            known[origin] = counts[origin]
            self.short[origin] -= 1
        return risen

    def learn_from(self, id: MessageId) -> None:
        """Whoever sent a message has all of its own up to it."""
        known = self.known[id.origin]
        if known[id.origin] < id.number:
            known[id.origin] = id.number
            self.short[id.origin] -= 1

    def held_by(self, enough: int, origin: int) -> int:
        """Up to which number so many processes, always as many, have the messages of `origin`."""
        if self.short[origin] <= 0:
            ranked = sorted(map(itemgetter(origin), self.known))
            self.stable[origin] = ranked[-enough]
            have_more = len(ranked) - bisect_right(ranked, ranked[-enough])
            self.short[origin] = enough - have_more
        return self.stable[origin]

    def after(self, origin: int, number: int) -> Iterator[Any]:
        """What is kept of `origin` beyond a number, in order."""
        items, last = self.items[origin], self.received.counts[origin]
        for kept in range(max(number, self.forgotten[origin]) + 1, last + 1):
            yield items[kept]
        for early in sorted(self.received.early[origin]):
            if early > number:
                yield items[early]

    def bury(self, process: int) -> None:
        self.kept_for = [known for known in self.kept_for if known is not self.known[process]]
        self._look_anew()
        for origin in range(len(self.known)):
            self.forget(origin)

    def forget(self, origin: int) -> None:
        """Whatever everyone has."""
        place, forgotten, kept_for = self.laggard[origin], self.forgotten[origin], self.kept_for
        while place < len(kept_for) and kept_for[place][origin] > forgotten:
            place += 1
        if place < len(kept_for):  # this one has nothing more
            self.laggard[origin] = place
            return
        self.laggard[origin] = 0
        floor = self.forgotten[origin] = min(map(itemgetter(origin), kept_for))
        for number in range(forgotten + 1, floor + 1):
            del self.items[origin][number]
