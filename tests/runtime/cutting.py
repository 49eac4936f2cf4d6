"""A proxy that stands before one node's port and breaks the connections through it."""

from __future__ import annotations

import asyncio
from random import Random

from ordercast.runtime.node import HOST

HALF_OPEN_S = 0.06
"""Longer than a redial takes."""


class CuttingProxy:
    """Cuts each connection after a random number of bytes, while `cutting` is on.

    What it has read and not passed on is lost, frames are cut in the middle, and sometimes only
    one side learns of it at once.
    """

    def __init__(self, target_port: int, *, seed: object) -> None:
        self.target_port = target_port
        self.random = Random(f"proxy/{seed}")
        self.cutting = True
        self.cuts = 0
        self.cables: list[_Cable] = []
        self._server: asyncio.Server

    async def start(self) -> int:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Cable(self).outer, HOST, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def aclose(self) -> None:
        self._server.close()
        for cable in self.cables:
            await cable.aclose()
        await self._server.wait_closed()


class _Cable:
    """One connection through the proxy: an outer side (who dialled) and an inner one."""

    def __init__(self, proxy: CuttingProxy) -> None:
        proxy.cables.append(self)
        self._proxy = proxy
        self.outer, self.inner = _Side(self), _Side(self)
        self._connecting: asyncio.Task[None] | None = None
        few, many = proxy.random.randint(0, 200), proxy.random.randint(0, 4000)
        self._bytes_left = proxy.random.choice((few, many))
        self._whole = True

    def plugged(self, side: _Side) -> None:
        if side is self.outer:
            side.transport.pause_reading()
            self._connecting = asyncio.create_task(self._connect())

    def passing(self, side: _Side, data: bytes) -> None:
        if not self._whole:
            return
        other = self.inner if side is self.outer else self.outer
        self._bytes_left -= len(data)
        if self._proxy.cutting and self._bytes_left < 0:
            other.transport.write(data[: self._proxy.random.randint(0, len(data) - 1)])
            self._proxy.cuts += 1
            self._cut()
        else:
            other.transport.write(data)

    def unplugged(self) -> None:
        if self._whole:
            self._whole = False
            self.outer.abort()
            self.inner.abort()

    async def aclose(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        self.outer.abort()
        self.inner.abort()
        await asyncio.sleep(0)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: self.inner, HOST, self._proxy.target_port)
        except OSError:
            self.outer.abort()
        else:
            if self._whole:
                self.outer.transport.resume_reading()
            else:
                self.inner.abort()

    def _cut(self) -> None:
        self._whole = False
        sides = [self.outer, self.inner]
        self._proxy.random.shuffle(sides)
        sides[0].abort()
        if self._proxy.random.random() < 0.5:
            asyncio.get_running_loop().call_later(HALF_OPEN_S, sides[1].abort)
        else:
            sides[1].abort()


class _Side(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, cable: _Cable) -> None:
        self._cable = cable

    def abort(self) -> None:
        if hasattr(self, "transport"):
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._cable.plugged(self)

    def data_received(self, data: bytes) -> None:
        self._cable.passing(self, data)

    def connection_lost(self, error: Exception | None) -> None:
        self._cable.unplugged()
