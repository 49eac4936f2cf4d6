"""What travels: a user's message, its name, and why it may be waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, final

from msgspec import Meta, Struct

__all__ = ["Count", "Held", "Message", "MessageId", "Process", "id_of", "message_of"]

Process = Annotated[int, Meta(ge=0, lt=2**16)]
Count = Annotated[int, Meta(ge=0, lt=2**62)]


class MessageId(NamedTuple):
    """Who created the message, and its number there, from 1. Printed as `0:3`."""

    origin: Process
    number: Count

    def __str__(self) -> str:
        return f"{self.origin}:{self.number}"


@final
class Message(Struct, frozen=True, array_like=True, tag="m"):
    """What a user sent. `destinations` is None for everyone, the sender included."""

    id: MessageId
    payload: bytes
    destinations: tuple[Process, ...] | None = None

    def addressed_to(self, process: int) -> bool:
        return self.destinations is None or process in self.destinations

    def addressees(self, size: int) -> Sequence[int]:
        """Every process of a group of `size` that this message is for."""
        return range(size) if self.destinations is None else self.destinations


class Held(Struct, frozen=True):
    """A message that has arrived and may not be delivered yet, and what it waits for."""

    id: MessageId
    waits_for: tuple[MessageId, ...] = ()
    """Predecessors that must be delivered first."""
    waits_on: tuple[int, ...] = ()
    """Processes whose word is needed."""

    def __str__(self) -> str:
        causes = [str(id) for id in self.waits_for]
        if self.waits_on:
            causes.append("word from " + ", ".join(f"p{process}" for process in self.waits_on))
        return f"{self.id}, waiting for {', '.join(causes)}"


def id_of(item: Any) -> MessageId:
    """The id of the message that an item carries; for items that always carry one."""
    message = message_of(item)
    assert message is not None
    return message.id


def message_of(packet: Any) -> Message | None:
    """The user's message inside a packet, however deeply wrapped; None for pure control."""
    while packet is not None and type(packet) is not Message:
        packet = getattr(packet, "message", None)
    return packet
