"""The sender's end of what it has sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from ordercast.runtime.group import Group
    from ordercast.runtime.outgoing import Slot

__all__ = ["Receipt", "Receipts"]


class Receipt(Struct, frozen=True, eq=False, gc=False):
    """The sender's end of one message."""

    _group: Group
    _slot: Slot
    _place: int

    @property
    def number(self) -> int:
        return self._slot.first + self._place

    @property
    def id(self) -> str:
        return f"{self._group.me}:{self.number}"

    async def stable(self) -> None:
        """Wait until a majority of those it is for hold the message: it outlives any minority."""
        await self._group._until_stable(self._slot)

    async def delivered_by(self, *names: str) -> tuple[str, ...]:
        """Wait until these members have delivered it, or all it is for; says who has by now."""
        return await self._group._until_delivered(self._slot, names)

    def __repr__(self) -> str:
        return f"<Receipt of {self.id}>"


class Receipts(Struct, frozen=True, eq=False):
    """The sender's end of messages that were sent in a row."""

    _group: Group
    _parts: list[tuple[Slot, int, int]]
    """Bundle by bundle: the place of the first one there, and how many."""

    def __len__(self) -> int:
        return sum(count for _, _, count in self._parts)

    def __iter__(self) -> Iterator[Receipt]:
        for slot, place, count in self._parts:
            for each in range(place, place + count):
                yield Receipt(self._group, slot, each)

    async def stable(self) -> None:
        """Wait until each of them is."""
        for slot, _, _ in self._parts:
            await self._group._until_stable(slot)

    async def delivered_by(self, *names: str) -> tuple[str, ...]:
        """Wait until these members have delivered all of them; says who has by now."""
        for slot, _, _ in self._parts:
            await self._group._until_delivered(slot, names)
        first, *rest = [self._group._who_has(slot) for slot, _, _ in self._parts] or [()]
        return tuple(name for name in first if all(name in each for each in rest))
