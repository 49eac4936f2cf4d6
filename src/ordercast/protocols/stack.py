"""An ordering on a dissemination: the one object that a host runs.

The stack numbers the user's messages, passes effects between its two layers until only
those for the host are left, and knows the wire format of the combination.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ordercast.errors import PeerError, UsageError
from ordercast.protocols.effects import Accept, Arrive, Effect, HostEffect, Spread, Transmit
from ordercast.protocols.interface import Dissemination, Ordering
from ordercast.protocols.messages import Held, Message, MessageId, message_of

__all__ = ["Codec", "Stack"]


class Stack:
    def __init__(self, ordering: Ordering, dissemination: Dissemination) -> None:
        assert (ordering.me, ordering.size) == (dissemination.me, dissemination.size)
        self.ordering = ordering
        self.dissemination = dissemination
        self.me = ordering.me
        self.size = ordering.size
        self.sent = 0

    def start(self) -> list[HostEffect]:
        return self._resolve([*self.ordering.start(), *self.dissemination.start()])

    def send(
        self, payload: bytes, to: Iterable[int] | None = None
    ) -> tuple[Message, list[HostEffect]]:
        message = Message(MessageId(self.me, self.sent + 1), payload, self.destinations(to))
        self.sent += 1
        effects = self._resolve(self.ordering.send(message))
        if self.ordering.accepts_at_once:
            effects.insert(0, Accept(message))
        return message, effects

    def receive(self, source: int, packet: Any) -> list[HostEffect]:
        self.message_in(source, packet)
        return self.handle(source, packet)

    def message_in(self, source: int, packet: Any) -> Message | None:
        """The user's message inside a packet that has come from `source`, if that can be."""
        message = message_of(packet)
        if message is not None:
            self.check(source, message)
        return message

    def handle(self, source: int, packet: Any) -> list[HostEffect]:
        """A packet that was looked into before."""
        return self._resolve(self.dissemination.receive(source, packet))

    def check(self, source: int, message: Message) -> None:
        """Could `source` really have this message? The wire format does not know the group."""
        origin, number = message.id
        if origin >= self.size or number < 1:
            raise PeerError(f"a group of {self.size} can have no message {message.id}")
        if origin != source and not (self.ordering.relays or self.dissemination.relays):
            raise PeerError(f"process {source} has {message.id}, and nobody forwards messages here")
        if origin == self.me and number > self.sent:
            raise PeerError(f"process {source} has {message.id}, which was never sent")
        if message.destinations and max(message.destinations) >= self.size:
            raise PeerError(f"{message.id} is addressed to {message.destinations}")

    def timer(self, name: str) -> list[HostEffect]:
        return self._resolve([*self.ordering.timer(name), *self.dissemination.timer(name)])

    def suspect(self, process: int) -> list[HostEffect]:
        effects = [*self.ordering.suspect(process), *self.dissemination.suspect(process)]
        return self._resolve(effects)

    def trust(self, process: int) -> list[HostEffect]:
        effects = [*self.ordering.trust(process), *self.dissemination.trust(process)]
        return self._resolve(effects)

    def bury(self, process: int) -> list[HostEffect]:
        effects = [*self.ordering.bury(process), *self.dissemination.bury(process)]
        return self._resolve(effects)

    def held(self) -> list[Held]:
        """What is here and waiting, in the order of ids."""
        return sorted([*self.ordering.held(), *self.dissemination.held()], key=lambda held: held.id)

    def codec(self) -> Codec:
        return Codec(self.packets)

    @property
    def packets(self) -> Any:
        """The wire format of the combination, as a type."""
        return self.dissemination.packets(self.ordering.items)

    def destinations(self, to: Iterable[int] | None) -> tuple[int, ...] | None:
        """Once each and in order; or the reason why nothing can be sent to these."""
        if to is None:
            if self.ordering.destinations == "one":
                raise UsageError(f"{self.ordering.name} sends to one process: name it")
            return None
        destinations = tuple(sorted(set(to)))
        for layer in (self.ordering, self.dissemination):
            if layer.destinations == "everyone" and destinations == tuple(range(self.size)):
                return None
            if layer.destinations == "everyone":
                ordering = self.ordering.for_some or self.ordering.name
                raise UsageError(
                    f"{layer.name} carries broadcasts only: send to everyone, or choose "
                    f"{ordering} over direct, which carries messages for some"
                )
        if not destinations:
            raise UsageError("a message needs a destination: give one, or None for everyone")
        if self.ordering.destinations == "one" and len(destinations) != 1:
            raise UsageError(f"{self.ordering.name} sends to one process at a time")
        for process in destinations:
            if not 0 <= process < self.size:
                raise UsageError(
                    f"process {process} is not in this group: it has 0 to {self.size - 1}"
                )
        return destinations

    def _resolve(self, effects: Iterable[Effect]) -> list[HostEffect]:
        """Each effect is seen to before the layer goes on to its next one."""
        resolved: list[HostEffect] = []
        self._resolve_into(resolved, effects)
        return resolved

    def _resolve_into(self, resolved: list[HostEffect], effects: Iterable[Effect]) -> None:
        for effect in effects:
            if type(effect) is Arrive:
                self._resolve_into(resolved, self.ordering.receive(effect.source, effect.item))
            elif type(effect) is Spread:
                self._resolve_into(resolved, self.dissemination.spread(effect.item, effect.to))
            else:
                resolved.append(effect)


class Codec:
    """Packets to bytes and back. Decoding checks every field: bytes are a stranger's word."""

    def __init__(self, packets: Any) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(packets)

    def encode(self, packet: Any) -> bytes:
        return self._encoder.encode(packet)

    def control_bytes(self, message: Message, effects: Iterable[HostEffect]) -> int:
        """What the first packet with this message adds to its payload; 0 if none leaves now."""
        for effect in effects:
            if type(effect) is Transmit and message_of(effect.packet) is message:
                return len(self.encode(effect.packet)) - len(message.payload)
        return 0

    def decode(self, data: bytes | memoryview) -> Any:
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise PeerError(f"a packet does not fit the wire format: {error}") from None
