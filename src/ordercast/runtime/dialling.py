"""Stays connected with the members whose index is lower; the others dial us.

Whoever was given up is dialled as well, now and then, and only to be told so: it may be alive, and
would go on alone.
"""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from socket import SOCK_STREAM
from typing import TYPE_CHECKING

from ordercast.runtime.connection import Connection
from ordercast.runtime.discovery import Address
from ordercast.runtime.discovery.address import words

if TYPE_CHECKING:
    from ordercast.runtime.node import Node
    from ordercast.runtime.peer import Peer

__all__ = ["Dialling", "Locate", "look_up"]

BACKOFF_S_MIN = 0.02
BACKOFF_S_MAX = 1.0
BACKOFF_S_DEAD = 10.0
"""How long to wait at most before the dead are dialled again."""
CONNECT_TIMEOUT_S = 5.0
LOOK_UP_TIMEOUT_S = 1.0

Locate = Callable[[str], Awaitable[Address | None]]
"""Where is this member now, if anyone knows?"""


class Dialling:
    def __init__(self, node: Node, *, context: ssl.SSLContext | None, seed: str) -> None:
        self._node = node
        self._context = context
        self._seed = seed
        self._tasks: list[asyncio.Task[None]] = []

    def start(
        self, peers: Mapping[int, Peer], addresses: Mapping[int, Address], locate: Locate | None
    ) -> None:
        for index, peer in peers.items():
            peer.address = addresses.get(index)
            if index < self._node.me:
                staying = self._stay_connected(peer, addresses[index], locate)
                task = asyncio.create_task(staying)
                task.add_done_callback(self._over)
                self._tasks.append(task)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """After `cancel`."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _over(self, task: asyncio.Task[None]) -> None:
        """A bug, in the finder of a user perhaps: nobody else would hear of it."""
        if not task.cancelled() and (bug := task.exception()) is not None:
            self._node.fail(bug)

    async def _stay_connected(self, peer: Peer, address: Address, locate: Locate | None) -> None:
        """Dial, and dial again whenever the connection is gone, while it is of any use."""
        jitter = random.Random(f"{self._seed}/{peer.index}/dial")
        pauses = _pauses_s(jitter, peer)
        while peer.refused is None:
            if await self._meet(peer, address):
                pauses = _pauses_s(jitter, peer)
            elif locate is not None:  # it may have moved, and someone else be where it was
                address = peer.address = await locate(peer.name) or address
            await asyncio.sleep(next(pauses))

    async def _meet(self, peer: Peer, address: Address) -> bool:
        """Dial once, and wait until the connection is gone; whether it was the peer's."""
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                connection = await self._dial(peer, address)
        except ssl.SSLError as error:
            peer.trouble = None
            self._node.reception.door.handshakes.fail(error, peer.name)
            return False
        except OSError as error:  # not there yet, or not any more; a timeout is one as well
            peer.trouble = f"{peer.name} cannot be reached at {address}: {words(error)}"
            if isinstance(error, ConnectionRefusedError):
                self._node.company.not_there(peer)
            return False
        await connection.gone.wait()
        return connection.greeted

    async def _dial(self, peer: Peer, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(self._node.reception, peer),
            address.host,
            address.port,
            ssl=self._context,
        )
        return connection


async def look_up(peer: Peer) -> None:
    """Does its host have an address? Nobody has asked yet if it is the one that dials."""
    if peer.address is None or peer.trouble is not None:
        return
    host, port = peer.address
    try:
        async with asyncio.timeout(LOOK_UP_TIMEOUT_S):
            await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    except OSError as error:
        peer.trouble = f"{peer.name} cannot be reached at {peer.address}: {words(error)}"


def _pauses_s(jitter: random.Random, peer: Peer) -> Iterator[float]:
    """Twice as long each time, up to a limit; never quite the same for two members."""
    pause_s = BACKOFF_S_MIN
    while True:
        yield pause_s * jitter.uniform(0.5, 1)
        pause_s = min(2 * pause_s, BACKOFF_S_DEAD if peer.dead else BACKOFF_S_MAX)
