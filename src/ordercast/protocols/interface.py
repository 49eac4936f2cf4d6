"""The two kinds of layer. An ordering decides when a message may be delivered;
a dissemination decides how it reaches everyone, and when it is safe to count on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from ordercast.protocols.effects import Effect
from ordercast.protocols.messages import Held, Message

__all__ = ["Destinations", "Dissemination", "Ordering"]

Destinations = Literal["any", "everyone"]


class Layer:
    """One member's part of an algorithm, in a group of `size` processes 0..size-1."""

    destinations: ClassVar[Destinations] = "any"
    """Whom a message may be for: any processes, or always everyone."""

    def __init__(self, me: int, size: int) -> None:
        self.me = me
        self.size = size

    def start(self) -> Iterable[Effect]:
        """The group has come together."""
        return ()

    def timer(self, name: str) -> Iterable[Effect]:
        """A timer that this layer started has run out."""
        return ()

    def suspect(self, process: int) -> Iterable[Effect]:
        """The host has reason to think that `process` has crashed."""
        return ()


class Ordering(Layer, ABC):
    items: ClassVar[Any]
    """The type (or union) of what this ordering spreads: its part of the wire format."""

    @abstractmethod
    def send(self, message: Message) -> Iterable[Effect]:
        """The user here sends a message."""

    @abstractmethod
    def receive(self, source: int, item: Any) -> Iterable[Effect]:
        """An item that `source` spread has arrived."""

    def held(self) -> Iterable[Held]:
        """Every message that is here and not delivered yet, and what it waits for."""
        return ()


class Dissemination(Layer, ABC):
    @staticmethod
    @abstractmethod
    def packets(items: Any) -> Any:
        """The type (or union) of what goes on the links, given the ordering's items."""

    @abstractmethod
    def spread(self, item: Any, to: tuple[int, ...] | None) -> Iterable[Effect]:
        """Bring an item of this process's ordering to others, and back to itself if meant."""

    @abstractmethod
    def receive(self, source: int, packet: Any) -> Iterable[Effect]:
        """A packet has come in on the link from `source`."""
