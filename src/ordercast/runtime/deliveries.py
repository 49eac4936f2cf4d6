"""Messages as an application gets them: one by one, or many at a time."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

__all__ = ["Batch", "Delivery"]


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
