"""Where messages wait for their predecessors.

A message is parked under one predecessor that it lacks and looked at again only when that one is
delivered. So releasing costs in proportion to what is released, not to everything that waits, and
the answer to "why is it held?" is at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ordercast.errors import PeerError
from ordercast.protocols.messages import MessageId

__all__ = ["ParkingLot"]

Item = TypeVar("Item")


class ParkingLot(Generic[Item]):
    def __init__(self) -> None:
        self.waiting: dict[MessageId, Item] = {}
        self.under: dict[MessageId, list[tuple[MessageId, Item]]] = {}

    def admit(
        self, id: MessageId, item: Item, lacks: Callable[[Item], MessageId | None]
    ) -> Iterator[Item]:
        """Yields what may be delivered now that `item` is here, one at a time: the caller notes
        each delivery before it asks for the next, since that is what releases the next."""
        if id in self.waiting:
            raise PeerError(f"{id} has come before")
        ready = [(id, item)]
        for id, item in ready:  # it grows meanwhile
            missing = lacks(item)
            if missing is None:
                self.waiting.pop(id, None)
                yield item
                ready += self.under.pop(id, ())
            else:
                self.waiting[id] = item
                self.under.setdefault(missing, []).append((id, item))
