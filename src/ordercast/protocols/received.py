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
        origin, number = id
        counts, early = self.counts, self.early[origin]
        if not early and number == counts[origin] + 1:  # nearly always
            counts[origin] = number
            return
        early.add(number)
        while counts[origin] + 1 in early:
            counts[origin] += 1
            early.remove(counts[origin])
