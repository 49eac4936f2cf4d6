"""Stays connected with the members whose index is lower; the others dial us."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from ordercast.runtime.connection import Connection
from ordercast.runtime.discovery import Address

if TYPE_CHECKING:
    from ordercast.runtime.node import Node
    from ordercast.runtime.peer import Peer

__all__ = ["Dialling", "Locate"]

BACKOFF_S_MIN = 0.02
BACKOFF_S_MAX = 1.0
CONNECT_TIMEOUT_S = 5.0

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
            if index < self._node.me:
                staying = self._stay_connected(peer, addresses[index], locate)
                self._tasks.append(asyncio.create_task(staying))

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """After `cancel`."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _stay_connected(self, peer: Peer, address: Address, locate: Locate | None) -> None:
        """Dial, and dial again whenever the connection is gone, while it is of any use."""
        jitter = random.Random(f"{self._seed}/{peer.index}/dial")
        pauses = _pauses_s(jitter)
        while not peer.dead and peer.refused is None:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    connection = await self._dial(peer, address)
            except ssl.SSLError as error:
                self._node.reception.door.handshakes.fail(error, peer.name)
            except OSError:  # not there yet, or not any more; a timeout is one as well
                if locate is not None:
                    address = await locate(peer.name) or address
            else:
                await connection.gone.wait()
                if connection.greeted:
                    pauses = _pauses_s(jitter)
            await asyncio.sleep(next(pauses))

    async def _dial(self, peer: Peer, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(self._node.reception, peer),
            address.host,
            address.port,
            ssl=self._context,
        )
        return connection


def _pauses_s(jitter: random.Random) -> Iterator[float]:
    """Twice as long each time, up to a limit; never quite the same for two members."""
    pause_s = BACKOFF_S_MIN
    while True:
        yield pause_s * jitter.uniform(0.5, 1)
        pause_s = min(2 * pause_s, BACKOFF_S_MAX)
