"""The contract of every way to find the others."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ordercast.errors import OrdercastError, UsageError
from ordercast.runtime.discovery.address import Address

__all__ = ["SIZE_MAX", "DiscoveryError", "Finder", "check_reachable", "check_size"]

SIZE_MAX = 10_000


class DiscoveryError(OrdercastError):
    """The members of a group cannot be found, or contradict each other."""


class Finder(ABC):
    names: tuple[str, ...] | None = None
    """The whole membership, if it is known beforehand."""
    size: int
    """How many members the group has."""
    known: dict[str, Address]
    """What the last look has found, and who was learnt of since: the answer to whoever asks."""
    port: int | None = None
    """The one that all members listen on, where the others cannot learn of another."""
    trouble: str = ""
    """What stood in the way of the last look, for the sentence at a timeout."""

    @abstractmethod
    async def announce(self, me: str, address: Address) -> None:
        """Let the others know where I am. What this raises ends `join`."""

    @abstractmethod
    async def look(self) -> dict[str, Address]:
        """Who is known now, oneself perhaps included. An `OSError` is something that passes: it is
        tried again. Whatever else this raises ends `join`. Later, when a member is looked for that
        is not where it was, errors of ordercast's pass as well, and any other ends the member."""

    @abstractmethod
    async def withdraw(self) -> None:
        """Undo the announcement. What this raises is logged, and no more."""

    @abstractmethod
    def learn(self, name: str, address: Address) -> None:
        """Somebody whose name has been verified says that it is there."""


def check_size(size: int) -> int:
    if not 1 <= size <= SIZE_MAX:
        raise UsageError(f"a group of {size} members: choose a size from 1 to {SIZE_MAX}")
    return size


def check_reachable(address: Address) -> Address:
    if address.is_wildcard:
        raise UsageError(
            f"others cannot reach {address}: announce an address of this machine that they can"
        )
    return address
