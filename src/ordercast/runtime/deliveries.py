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
        reader = Reader(_no_more)
        one_more = [*self.payloads, b""]  # a reader keeps the last one back
        reader.begin(self.sender, self.first, one_more, self.position, self.time_us, None)
        while (delivery := reader.take()) is not None:
            yield delivery


async def _no_more() -> Delivery:
    raise StopAsyncIteration


def last_of(bundle: Bundle, sender: str) -> Delivery:
    """Its last message; of most bundles it is the only one, where nobody is in a hurry."""
    return Delivery(sender, bundle.last, bundle.payloads[-1], bundle.end, bundle.time_us)
