"""The limit: frames of the same bytes over uvloop and nothing else. No order, no name, no memory.

A length and the blob, on one connection for each pair; encrypted with the contexts that the
product uses. As `served`, what is published within a turn of the loop leaves together at its
end, and what comes is taken by a task with `async for`: so much any library of that kind has.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import FRAMES, ONE, Alone, Member, Setting

__all__ = ["GROUP", "SUBJECTS", "member_name"]

GROUP = "benchmark"
LENGTH_BYTES = 4
BUFFER_BYTES = 1 << 18

Take = Callable[[memoryview], None]


def member_name(me: int) -> str:
    """In the certificates of a case."""
    return f"m{me}"


class _Connection(asyncio.BufferedProtocol):
    transport: asyncio.Transport

    def __init__(self, mesh: _Mesh, take: Take) -> None:
        self._mesh = mesh
        self._take = take
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._filled = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop has a class of its own
        self._mesh.connected(self)

    def get_buffer(self, hint: int) -> memoryview:
        return self._buffer[self._filled :]

    def buffer_updated(self, count: int) -> None:
        buffer, start, end = self._buffer, 0, self._filled + count
        while end - start >= LENGTH_BYTES:
            body = start + LENGTH_BYTES
            after = body + int.from_bytes(buffer[start:body], "little")
            if after > end:
                break
            self._take(buffer[body:after])
            start = after
        self._filled = end - start
        if start and start < end:
            buffer[: self._filled] = bytes(buffer[start:end])

    def pause_writing(self) -> None:
        self._mesh.paused(self)

    def resume_writing(self) -> None:
        self._mesh.resumed(self)


class _Mesh:
    """One member: a connection to each of the others."""

    def __init__(self, setting: Setting, take: Take) -> None:
        self._take = take
        self._others = setting.n - 1
        self._connections: list[_Connection] = []
        self._complete = asyncio.Event()
        self._slow: set[_Connection] = set()
        self._writable = asyncio.Event()
        self._writable.set()
        self._server: asyncio.Server

    async def join(self, setting: Setting) -> None:
        loop = asyncio.get_running_loop()
        server_side, client_side = None, None
        if setting.tls:
            from ordercast.runtime.keys import Credentials

            me = member_name(setting.me)
            credentials = Credentials.load(setting.directory / "keys", group=GROUP, me=me)
            server_side, client_side = credentials.server, credentials.client
        host, port = setting.host_port(setting.me)
        self._server = await loop.create_server(
            partial(_Connection, self, self._take), host, port, ssl=server_side
        )
        for other in range(setting.me):
            await self._dial(*setting.host_port(other), client_side)
        await self._complete.wait()

    async def _dial(self, host: str, port: int, context: object) -> None:
        loop, make = asyncio.get_running_loop(), partial(_Connection, self, self._take)
        while True:
            try:
                await loop.create_connection(make, host, port, ssl=context)  # type: ignore[call-overload]
                return
            except ConnectionRefusedError:
                await asyncio.sleep(0.02)

    async def publish(self, blobs: Sequence[bytes]) -> None:
        self.write(blobs)
        await self.writable()

    async def writable(self) -> None:
        if self._slow:
            await self._writable.wait()

    def write(self, blobs: Sequence[bytes]) -> None:
        if len(blobs) == 1:
            data = len(blobs[0]).to_bytes(LENGTH_BYTES, "little") + blobs[0]
        else:
            parts = ((len(blob).to_bytes(LENGTH_BYTES, "little"), blob) for blob in blobs)
            data = b"".join(part for pair in parts for part in pair)
        for connection in self._connections:
            connection.transport.write(data)

    async def close(self) -> None:
        for connection in self._connections:
            connection.transport.abort()
        self._server.close()

    def connected(self, connection: _Connection) -> None:
        self._connections.append(connection)
        if len(self._connections) == self._others:
            self._complete.set()

    def paused(self, connection: _Connection) -> None:
        self._slow.add(connection)
        self._writable.clear()

    def resumed(self, connection: _Connection) -> None:
        self._slow.discard(connection)
        if not self._slow:
            self._writable.set()


class Raw(Alone):
    name = "raw"
    order = "none"
    remarks = "the limit: uvloop, a length and the bytes"
    forms = (FRAMES, ONE)
    tls = (False, True)

    def missing(self) -> str | None:
        if importlib.util.find_spec("uvloop") is None:
            return "there is no uvloop: pip install 'ordercast[fast]'"
        return None

    async def join(self, setting: Setting, sink: Sink) -> Member:
        mesh = _Mesh(setting, sink.take)
        await mesh.join(setting)
        return mesh


class _Served:
    """A mesh behind a queue at each end."""

    def __init__(self, setting: Setting, sink: Sink) -> None:
        self.mesh = _Mesh(setting, self._arrived)
        self._loop = asyncio.get_running_loop()
        self._leaving: list[bytes] = []
        self._here: deque[bytes] = deque()
        self._news = self._loop.create_future()
        self._reading = asyncio.create_task(self._read(sink))

    async def publish(self, blobs: Sequence[bytes]) -> None:
        if not self._leaving:
            self._loop.call_soon(self._leave)
        self._leaving += blobs
        await self.mesh.writable()

    async def close(self) -> None:
        self._reading.cancel()
        await self.mesh.close()

    def _leave(self) -> None:
        blobs, self._leaving = self._leaving, []
        self.mesh.write(blobs)

    def _arrived(self, blob: memoryview) -> None:
        self._here.append(bytes(blob))
        if not self._news.done():
            self._news.set_result(None)

    async def _read(self, sink: Sink) -> None:
        async for blob in self:
            sink.take(blob)

    def __aiter__(self) -> _Served:
        return self

    async def __anext__(self) -> bytes:
        while not self._here:
            self._news = self._loop.create_future()
            await self._news
        return self._here.popleft()


class RawServed(Raw):
    name = "served"
    remarks = "raw frames behind an iterator"

    async def join(self, setting: Setting, sink: Sink) -> Member:
        served = _Served(setting, sink)
        await served.mesh.join(setting)
        return served


SUBJECTS = (Raw(), RawServed())
