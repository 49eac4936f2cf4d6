"""How one's own bundles stand: who has delivered each, and how much each member has yet to take."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from ordercast.errors import PeerError
from ordercast.protocols.messages import Count

__all__ = ["Report", "Standing"]


class Report(Struct, frozen=True, array_like=True, tag="report"):
    """From a member to the origin of bundles that it has delivered since it last said so."""

    ranges: tuple[Count, ...]
    """First and last number of each unbroken row."""
    taken: Count
    """How many bytes of the origin's bundles the application here has taken, ever."""


class Standing:
    __slots__ = ("buried", "changed", "costs", "gone", "lacking", "me", "owed", "size", "taken")

    def __init__(self, me: int, size: int) -> None:
        self.me = me
        self.size = size
        self.lacking: dict[int, int] = {}
        """By bundle, who it is for and has not delivered it, as far as is known: one bit each."""
        self.costs: dict[int, int] = {}
        """Of each of these, in bytes."""
        self.gone = 0
        """Bits of members that are not waited for any more."""
        self.buried: dict[int, tuple[int, frozenset[int]]] = {}
        """Of each of those, the first bundle that came too late for it, and which it lacks of those
        before."""
        self.owed = [0] * size
        """Bytes sent to each member, ever."""
        self.taken = [0] * size
        """Bytes that each member's application has taken, ever."""
        self.changed: list[int] = []
        """Bundles that someone has delivered since the host last looked."""

    def sent(self, number: int, cost: int, addressees: Iterable[int]) -> None:
        lacking = 0
        for process in addressees:
            lacking |= 1 << process
            self.owed[process] += cost
        self.lacking[number] = lacking & ~self.gone
        self.costs[number] = cost

    def told(self, process: int, ranges: Sequence[int], taken: int) -> None:
        if len(ranges) % 2 or taken > self.owed[process]:
            raise PeerError(f"process {process} reports what cannot be")
        for first, last in zip(ranges[::2], ranges[1::2], strict=True):
            if last - first < len(self.lacking):
                numbers: Iterable[int] = range(first, last + 1)
            else:  # a stranger's word may span anything
                numbers = [number for number in self.lacking if first <= number <= last]
            for number in numbers:
                self._has(process, number)
        self.took(process, taken)

    def _has(self, process: int, number: int) -> None:
        bit = 1 << process
        lacking = self.lacking.get(number, 0)
        if lacking & bit:
            if lacking == bit:
                self._settled(number)
            else:
                self.lacking[number] = lacking ^ bit
            self.changed.append(number)

    def _settled(self, number: int) -> None:
        del self.lacking[number], self.costs[number]

    def took(self, process: int, taken: int) -> None:
        self.taken[process] = max(self.taken[process], taken)

    def bury(self, process: int, *, sent: int) -> None:
        """It will never come back, and so many bundles were sent until now."""
        bit = 1 << process
        lost = frozenset(number for number, lacking in self.lacking.items() if lacking & bit)
        self.buried.setdefault(process, (sent + 1, lost))
        self.gone |= bit
        for number in list(self.lacking):
            self.lacking[number] &= ~self.gone
            self.changed.append(number)
            if not self.lacking[number]:
                self._settled(number)

    def undelivered(self, process: int) -> int:
        """Bytes that it has not said to have delivered."""
        return sum(
            self.costs[number] for number, lacking in self.lacking.items() if lacking >> process & 1
        )

    def outstanding(self, exempt: Collection[int] = ()) -> int:
        """Bytes that the slowest member has yet to take, besides some that nobody waits for."""
        most = 0
        for process, owed in enumerate(self.owed):
            left = owed - self.taken[process]
            if left > most and not self.gone >> process & 1 and process not in exempt:
                most = left
        return most

    def waits_for(self, number: int) -> list[int]:
        """Who has yet to deliver the bundle, as far as is known."""
        lacking = self.lacking.get(number, 0)
        return [process for process in range(self.size) if lacking >> process & 1]

    def lacks(self, number: int) -> set[int]:
        """Who has not delivered it: those who are waited for, and those who never will."""
        late = (p for p, (end, lost) in self.buried.items() if number >= end or number in lost)
        return {*self.waits_for(number), *late}
