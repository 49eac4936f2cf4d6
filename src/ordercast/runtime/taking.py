"""One message after the other: deliveries, and the iterator that hands them out.

This is the definition, in Python. `_taking.c` does the same in C, and is what runs where it was
built: this is the one part of a member that works for every single message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from itertools import count, repeat
from operator import length_hint

from msgspec import Struct

__all__ = ["Delivery", "Reader"]


class Delivery(Struct, frozen=True, gc=False):
    """One message, as it was delivered here."""

    sender: str
    number: int
    """The sender's own count of its messages, from 1."""
    payload: bytes
    position: int
    """Its place among all that was delivered here, from 1: where to go on after a restart."""
    time_us: int

    @property
    def id(self) -> str:
        return f"{self.sender}:{self.number}"


class Reader:
    """Hands out a bundle message by message, to one iterator or to several in turn: what one has
    taken, no other gets. With the last one the whole bundle is taken, so that one is left to
    `advance`, which also brings the next bundle, and raises `StopAsyncIteration` at the end."""

    def __init__(self, advance: Callable[[], Awaitable[Delivery]]) -> None:
        self._advance = advance
        self._let_go()

    def begin(
        self,
        sender: str,
        first: int,
        payloads: list[bytes],
        position: int,
        time_us: int,
        ticks: memoryview | None,
    ) -> None:
        """All but the last of these are at hand now. At the place of each that is taken, a 1 is
        stored in `ticks`, before anyone gets it."""
        self._more = len(payloads) - 1
        self._numbers = iter(range(first, first + self._more))
        self._at_hand: Iterator[Delivery] = map(
            Delivery,
            *(repeat(sender), self._numbers, payloads, count(position), repeat(time_us)),
        )
        self._position = position
        self._ticks = ticks

    def take(self) -> Delivery | None:
        """The next one, if one is at hand."""
        taken = next(self._at_hand, None)
        if taken is not None and self._ticks is not None:
            self._ticks[taken.position - self._position] = 1
        return taken

    @property
    def taken(self) -> int:
        """How many of the bundle were."""
        return self._more - length_hint(self._numbers)

    def drop(self) -> int:
        """Nobody gets any more of these. How many were taken."""
        taken = self.taken
        deque(self._numbers, maxlen=0)
        self._let_go()
        return taken

    def _let_go(self) -> None:
        self.begin("", 1, [b""], 1, 0, None)

    async def __aiter__(self) -> AsyncGenerator[Delivery, None]:
        while True:
            ticks, start = self._ticks, self._position
            for delivery in self._at_hand:
                if ticks is not None:
                    ticks[delivery.position - start] = 1
                yield delivery
            try:  # another bundle may have been begun meanwhile
                delivery = await self.__anext__()
            except StopAsyncIteration:
                return
            yield delivery

    async def __anext__(self) -> Delivery:
        taken = self.take()
        return await self._advance() if taken is None else taken
