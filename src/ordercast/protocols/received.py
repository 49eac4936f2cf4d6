"""Which numbers of each process have been seen: a count for the unbroken row, a set for the rest.

Memory is bounded by the gaps, not by the length of the run.
"""

from __future__ import annotations

from ordercast.protocols.messages import MessageId

__all__ = ["Received"]


class Received:
    def __init__(self, size: int) -> None:
        self.counts = [0] * size
        """From each process, every number up to this one is here."""
        self.early: list[set[int]] = [set() for _ in range(size)]

    def __contains__(self, id: MessageId) -> bool:
        return id.number <= self.counts[id.origin] or id.number in self.early[id.origin]

    def add(self, id: MessageId) -> None:
        early = self.early[id.origin]
        early.add(id.number)
        while self.counts[id.origin] + 1 in early:
            self.counts[id.origin] += 1
            early.remove(self.counts[id.origin])
