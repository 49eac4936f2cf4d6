"""The two kinds of layer. An ordering decides when a message may be delivered;
a dissemination decides how it reaches everyone, and when it is safe to count on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, Literal

from ordercast.protocols.effects import Effect
from ordercast.protocols.messages import Held, Message

__all__ = ["Destinations", "Dissemination", "Ordering"]

Destinations = Literal["any", "everyone", "one"]


@lru_cache(256)
def _all_but(size: int, processes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(process for process in range(size) if process not in processes)


class Layer:
    """One member's part of an algorithm, in a group of `size` processes 0..size-1."""

    destinations: ClassVar[Destinations] = "any"
    """Whom a message may be for: any processes, always everyone, or just one."""

    for_some: ClassVar[str | None] = None
    """Where that is everyone: the name of one that gives the same order to any processes."""

    relays: ClassVar[bool] = False
    """Do messages travel by way of processes that did not create them?"""

    def __init__(self, me: int, size: int) -> None:
        self.me = me
        self.size = size

    @property
    def name(self) -> str:
        """As the catalog has it: each algorithm is a file of its name."""
        return type(self).__module__.rpartition(".")[2]

    def start(self) -> Iterable[Effect]:
        """The group has come together."""
        return ()

    def timer(self, name: str) -> Iterable[Effect]:
        """A timer that this layer started has run out."""
        return ()

    def suspect(self, process: int) -> Iterable[Effect]:
        """The host has reason to think that `process` has crashed."""
        return ()

    def trust(self, process: int) -> Iterable[Effect]:
        """The suspicion of `process` has proved wrong."""
        return ()

    def bury(self, process: int) -> Iterable[Effect]:
        """The host will never let `process` back in: nothing need be kept for it."""
        return ()

    def held(self) -> Iterable[Held]:
        """Every message that is here and not handed on yet, and what it waits for."""
        return ()

    def all_but(self, *processes: int) -> tuple[int, ...]:
        return _all_but(self.size, processes)


class Ordering(Layer, ABC):
    items: ClassVar[Any]
    """The type (or union) of what this ordering spreads: its part of the wire format."""
    needs_direct: ClassVar[bool] = False
    """Does it talk to chosen processes even when its messages are for everyone?"""
    needs_fifo: ClassVar[bool] = False
    """Must the host's links keep their order?"""
    accepts_at_once: ClassVar[bool] = True
    """Does a message count as sent when the user asks, or when the ordering says `Accept`?"""

    @property
    def coordinator(self) -> int | None:
        """The process that everyone's order depends on right now, if there is one."""
        return None

    @abstractmethod
    def send(self, message: Message) -> Iterable[Effect]:
        """The user here sends a message."""

    @abstractmethod
    def receive(self, source: int, item: Any) -> Iterable[Effect]:
        """An item that `source` spread has arrived."""


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
