"""Messages as an application gets them: one by one, or many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from ordercast.runtime import taking
from ordercast.runtime.bundle import Bundle

if TYPE_CHECKING:
    from ordercast.runtime.taking import Delivery, Reader
else:
    try:
        from ordercast.runtime._taking import Delivery, Reader
    except ImportError:  # it was not built: there was no compiler
        from ordercast.runtime.taking import Delivery, Reader

__all__ = ["COMPILED", "Batch", "Delivery", "Reader", "last_of"]

COMPILED = Reader is not taking.Reader
"""Whether deliveries are made and handed out by compiled code."""


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


def last_of(bundle: Bundle, sender: str) -> Delivery:
    """Its last message; of most bundles it is the only one, where nobody is in a hurry."""
    return Delivery(sender, bundle.last, bundle.payloads[-1], bundle.end, bundle.time_us)
