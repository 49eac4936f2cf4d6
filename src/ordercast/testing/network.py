"""The network of a story: who listens where, how long things take, and who is cut off from whom."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections.abc import Callable, Collection
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from ordercast.errors import UsageError
from ordercast.testing.loop import process_of
from ordercast.testing.transport import Transport, Where

if TYPE_CHECKING:
    from ordercast.testing.loop import VirtualLoop

__all__ = ["Network", "Server"]

RESEND_S = 0.2
"""After which TCP sends again what was lost."""
CONNECT_S = 127.0
"""After which it gives up to connect."""
FIRST_PORT = 49152
_ANYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - nobody is there


class Network:
    loop: VirtualLoop

    def __init__(self, dice: random.Random, delay_s: tuple[float, float], loss: float) -> None:
        self._dice = dice
        self.delay_s = delay_s
        self.loss = loss
        self._sides: tuple[frozenset[str], ...] = ()
        self._listening: dict[Where, Server] = {}
        self._stuck: list[Transport] = []
        self._next_port = FIRST_PORT

    def takes_s(self) -> float:
        """How long it takes for something to arrive, this time."""
        seconds = self._dice.uniform(*self.delay_s)
        while self.loss and self._dice.random() < self.loss:
            seconds += RESEND_S
        return seconds

    def cut(self, *sides: Collection[str]) -> None:
        self._sides = tuple(map(frozenset, sides))
        self._free_the_stuck()

    def heal(self) -> None:
        self.cut()

    def passes(self, a: Context, b: Context) -> bool:
        """Whether there is a way between two processes; those on no side have one to everyone."""
        one, other = process_of(a), process_of(b)
        if one is None or other is None:
            return True
        sides = [side for side in self._sides if one.name in side or other.name in side]
        return len(sides) < 2

    def stuck(self, transport: Transport) -> None:
        self._stuck.append(transport)

    async def create_server(
        self, factory: Callable[[], Any], host: Any, port: Any, *, ssl: Any = None,
        start_serving: bool = True, **_: Any,
    ) -> Server:  # fmt: skip
        _refuse_tls(ssl)
        where = _where(host, port or self._free_port())
        if where in self._listening:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        server = self._listening[where] = Server(self, factory, where)
        if start_serving:
            await server.start_serving()
        return server

    async def create_connection(
        self, factory: Callable[[], Any], host: Any, port: Any, *, ssl: Any = None, **_: Any
    ) -> tuple[Transport, Any]:
        _refuse_tls(ssl)
        where, context = _where(host, port), copy_context()
        began = self.loop.time()
        while True:
            await asyncio.sleep(self.takes_s() + self.takes_s())
            server = self._found(where)
            if server is None:
                raise ConnectionRefusedError(
                    errno.ECONNREFUSED, f"nobody listens at {where[0]}:{where[1]}"
                )
            if self.passes(context, server.context):
                break
            if self.loop.time() - began > CONNECT_S:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
            await asyncio.sleep(RESEND_S)
        own = ("127.0.0.1", self._free_port())
        protocol = factory()
        here = Transport(self, protocol, context, own, where)
        there = Transport(self, None, server.context, where, own)
        here.other, there.other = there, here
        server.accept(there)
        protocol.connection_made(here)
        return here, protocol

    def vacate(self, where: Where, server: Server) -> None:
        if self._listening.get(where) is server:
            del self._listening[where]

    def _found(self, where: Where) -> Server | None:
        """Who listens there, or anywhere at that port."""
        found = self._listening.get(where)
        if found is None:
            anywhere = (self._listening.get((host, where[1])) for host in _ANYWHERE)
            found = next((server for server in anywhere if server is not None), None)
        return found if found is not None and found.is_serving() else None

    def _free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def _free_the_stuck(self) -> None:
        stuck, self._stuck = self._stuck, []
        for transport in stuck:
            transport.go_on()


class Server(asyncio.AbstractServer):
    def __init__(self, network: Network, factory: Callable[[], Any], where: Where) -> None:
        self.context = copy_context()
        self._network = network
        self._factory = factory
        self._where = where
        self._serving = False
        self._closed = network.loop.create_future()
        self._process = process_of(self.context)
        if self._process is not None:
            self._process.servers[self] = None

    @property
    def sockets(self) -> tuple[_Socket, ...]:
        return (_Socket(self._where),)

    def accept(self, transport: Transport) -> None:
        def made() -> None:
            transport.protocol = self._factory()
            transport.protocol.connection_made(transport)

        self._network.loop.call_soon(made, context=self.context)

    def close(self) -> None:
        self.vanish()
        if self._process is not None:
            self._process.servers.pop(self, None)
        if not self._closed.done():
            self._closed.set_result(None)

    def vanish(self) -> None:
        self._serving = False
        self._network.vacate(self._where, self)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def is_serving(self) -> bool:
        return self._serving

    async def start_serving(self) -> None:
        self._serving = True

    async def serve_forever(self) -> None:
        self._serving = True
        await asyncio.shield(self._closed)

    async def wait_closed(self) -> None:
        await asyncio.shield(self._closed)


class _Socket:
    def __init__(self, where: Where) -> None:
        self._where = where

    def getsockname(self) -> Where:
        return self._where


def _where(host: Any, port: Any) -> Where:
    return ("127.0.0.1" if host == "localhost" else str(host or "")), int(port)


def _refuse_tls(ssl: object) -> None:
    if ssl:
        raise UsageError("there is no TLS in a story, where nobody listens in: leave the keys out")
