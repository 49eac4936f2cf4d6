"""Where members have to be asked who they are: behind a DNS name, or through one that is known.

What goes over the wire is not decided here: the host gives a function `ask`. A member that is
asked answers with its name and what its finder has `known`, and lets it `learn` of whoever asked.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ordercast.errors import PeerError, UsageError
from ordercast.runtime.discovery.address import Address, words
from ordercast.runtime.discovery.finder import (
    SIZE_MAX,
    DiscoveryError,
    Finder,
    check_reachable,
    check_size,
)
from ordercast.runtime.keys import check_name

__all__ = ["Answer", "Ask", "Dns", "Resolve", "Via"]

ASK_TIMEOUT_S = 2.0

logger = logging.getLogger(__name__)


class Answer(NamedTuple):
    name: str
    """Of the member that answers, verified by its certificate."""
    members: Mapping[str, Address]
    """Whom it knows, itself included: where it has announced itself."""


Ask = Callable[[Address], Awaitable[Answer]]
"""Fails with an `OSError` if nobody is there, with a `PeerError` if it is no member."""
Resolve = Callable[[Address], Awaitable[Sequence[Address]]]


class Asking(Finder):
    """What `Dns` and `Via` share."""

    def __init__(self, size: int, *, ask: Ask, ask_timeout_s: float = ASK_TIMEOUT_S) -> None:
        self.size = check_size(size)
        self._ask = ask
        self._ask_timeout_s = ask_timeout_s
        self.known = {}
        self._announced: dict[str, Address] = {}
        self._learnt: dict[str, Address] = {}
        self._warned: set[Address] = set()

    async def announce(self, me: str, address: Address) -> None:
        """Nothing to do: whoever asks is told."""
        self._announced = {me: check_reachable(address)}
        self.known |= self._announced

    async def withdraw(self) -> None:
        self._announced = {}

    def learn(self, name: str, address: Address) -> None:
        if name in self._learnt or len(self._learnt) < SIZE_MAX:
            self._learnt[name] = address
            self.known[name] = address

    async def look(self) -> dict[str, Address]:
        self.known = await self._find() | self._announced
        return dict(self.known)

    @abstractmethod
    async def _find(self) -> dict[str, Address]:
        """Whom the way of this finder leads to, now."""

    async def _ask_all(self, addresses: Iterable[Address]) -> dict[Address, Answer]:
        """Those that answer; the others may do so at the next look."""
        asked = list(dict.fromkeys(addresses))
        troubles: list[str] = []
        answers = await asyncio.gather(*(self._ask_one(address, troubles) for address in asked))
        self.trouble = "; ".join(troubles)
        heard = {at: answer for at, answer in zip(asked, answers, strict=True) if answer}
        self._check_names(heard)
        return heard

    async def _ask_one(self, address: Address, troubles: list[str]) -> Answer | None:
        try:
            async with asyncio.timeout(self._ask_timeout_s):
                answer = await self._ask(address)
            _check(answer)
        except OSError as error:  # a timeout is one as well
            troubles.append(f"{address}: {words(error)}")
        except PeerError as error:
            troubles.append(f"{address}: {error}")
            if address not in self._warned:
                self._warned.add(address)
                logger.warning("what is at %s is not a member: %s", address, error)
        else:
            return answer
        return None

    def _check_names(self, heard: Mapping[Address, Answer]) -> None:
        """One member may be met at two addresses; two members may not have one name."""
        announced = dict(self._announced)
        for name, members in heard.values():
            there = announced.setdefault(name, members[name])
            if there != members[name]:
                raise DiscoveryError(
                    f"two members call themselves {name!r}, at {there} and at {members[name]}: "
                    "no two can have one name"
                )


def _check(answer: Answer) -> None:
    if answer.name not in answer.members:
        raise PeerError(f"{answer.name!r} does not say where it is")
    try:
        for name, address in answer.members.items():
            check_name(name)
            check_reachable(address)
    except UsageError as error:
        raise PeerError(f"{answer.name!r} tells of what cannot be: {error}") from None


async def resolve(address: Address) -> list[Address]:
    """All addresses of a host name."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return [Address(*where[:2]) for *_, where in found]


class Dns(Asking):
    """A name that stands for all members, as that of a headless service."""

    def __init__(
        self,
        name: Address,
        size: int,
        *,
        ask: Ask,
        resolve: Resolve = resolve,
        ask_timeout_s: float = ASK_TIMEOUT_S,
    ) -> None:
        super().__init__(size, ask=ask, ask_timeout_s=ask_timeout_s)
        self.port = name.port
        self._name = name
        self._resolve = resolve

    async def _find(self) -> dict[str, Address]:
        """Members at the address where they answered, which others may know by another."""
        try:
            heard = await self._ask_all(await self._resolve(self._name))
        except OSError as error:  # as long as nobody is registered there
            self.trouble = f"{self._name.host} cannot be resolved: {error.strerror or error}"
            heard = {}
        answered = {answer.name: at for at, answer in reversed(heard.items())}
        return self._learnt | answered


class Via(Asking):
    """Through any member whose address is known, which tells of the others."""

    def __init__(
        self,
        seeds: Iterable[Address],
        size: int,
        *,
        ask: Ask,
        ask_timeout_s: float = ASK_TIMEOUT_S,
    ) -> None:
        super().__init__(size, ask=ask, ask_timeout_s=ask_timeout_s)
        self._seeds = tuple(seeds)

    async def _find(self) -> dict[str, Address]:
        """A member's own word counts more than what others say of it."""
        heard = await self._ask_all(self._seeds)
        own_words = {name: members[name] for name, members in heard.values()}
        found: dict[str, Address] = {}
        for _, members in heard.values():
            found |= members
        return found | self._learnt | own_words
