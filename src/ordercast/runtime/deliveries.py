"""Messages as an application gets them: one by one, or many at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count, repeat
from operator import length_hint

from msgspec import Struct

from ordercast.runtime.bundle import Bundle

__all__ = ["Batch", "Delivery", "OneByOne", "only_one"]


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


class Batch(Struct, frozen=True):
    """Messages of one sender that were delivered here in a row."""

    sender: str
    first: int
    """The number of the first one; the others follow."""
    payloads: list[bytes]
    position: int
    time_us: int

    def __len__(self) -> int:
        return len(self.payloads)

    def __iter__(self) -> Iterator[Delivery]:
        for place, payload in enumerate(self.payloads):
            yield Delivery(
                self.sender, self.first + place, payload, self.position + place, self.time_us
            )


def only_one(sender: str, bundle: Bundle) -> Delivery:
    """The message of a bundle that has no other: most are like that where nobody is in a hurry."""
    return Delivery(sender, bundle.first, bundle.payloads[0], bundle.position, bundle.time_us)


class OneByOne:
    """A bundle that is taken message by message, by one iterator or by several in turn: what one
    has taken, no other gets. Deliveries are made in C: this is done for every message."""

    def __init__(self, sender: str, bundle: Bundle, ticks: memoryview | None) -> None:
        self.ticks = ticks
        """Where it is noted that one is taken, if it has to be."""
        more = len(bundle.payloads) - 1
        self._more = more
        self._numbers = iter(range(bundle.first, bundle.first + more))
        self.but_last = map(
            Delivery,
            *(repeat(sender), self._numbers, bundle.payloads),
            *(count(bundle.position), repeat(bundle.time_us)),
        )
        """All but the last, with which the whole bundle is taken."""
        self.last = Delivery(
            *(sender, bundle.last, bundle.payloads[more], bundle.end, bundle.time_us)
        )

    @property
    def taken(self) -> int:
        """How many were."""
        return self._more - length_hint(self._numbers)

    def drop(self) -> int:
        """Nobody gets any more of these. How many were taken."""
        taken = self.taken
        deque(self._numbers, maxlen=0)
        return taken
