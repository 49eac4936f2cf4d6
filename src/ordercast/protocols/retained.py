"""Messages that are kept until everyone is known to have them, and what is known of everyone."""

from __future__ import annotations

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

    def add(self, id: MessageId, item: Any) -> None:
        self.received.add(id)
        self.items[id.origin][id.number] = item

    def counts(self) -> tuple[int, ...]:
        return tuple(self.received.counts)

    def learn(self, process: int, counts: Sequence[int]) -> list[int]:
        """Take another process's word for what it has; returns the origins that it has more of."""
        known = self.known[process]
        risen = list(compress(range(len(known)), map(gt, counts, known)))
        for origin in risen:
            known[origin] = counts[origin]
        return risen

    def ranked(self, origin: int) -> list[int]:
        """How many messages of `origin` each process has, as far as is known; fewest first."""
        return sorted(map(itemgetter(origin), self.known))

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
        for origin in range(len(self.known)):
            self.forget(origin)

    def forget(self, origin: int) -> None:
        floor = self.received.counts[origin]
        for known in self.kept_for:
            if known[origin] < floor:
                floor = known[origin]
        while self.forgotten[origin] < floor:
            self.forgotten[origin] += 1
            del self.items[origin][self.forgotten[origin]]
