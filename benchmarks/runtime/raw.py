"""The limit: frames of the same bytes over uvloop and nothing else. No order, no name, no memory.

A length and the blob, on one connection for each pair; encrypted with the contexts that the
product uses.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from typing import cast

from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import FRAMES, ONE, Alone, Setting

__all__ = ["GROUP", "SUBJECTS", "member_name"]

GROUP = "benchmark"
LENGTH_BYTES = 4
BUFFER_BYTES = 1 << 18


def member_name(me: int) -> str:
    """In the certificates of a case."""
    return f"m{me}"


class _Connection(asyncio.BufferedProtocol):
    transport: asyncio.Transport

    def __init__(self, mesh: _Mesh) -> None:
        self._mesh = mesh
        self._take = mesh.sink.take
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

    def __init__(self, setting: Setting, sink: Sink) -> None:
        self.sink = sink
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
            lambda: _Connection(self), host, port, ssl=server_side
        )
        for other in range(setting.me):
            await self._dial(*setting.host_port(other), client_side)
        await self._complete.wait()

    async def _dial(self, host: str, port: int, context: object) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                await loop.create_connection(lambda: _Connection(self), host, port, ssl=context)  # type: ignore[call-overload]
                return
            except ConnectionRefusedError:
                await asyncio.sleep(0.02)

    async def publish(self, blobs: Sequence[bytes]) -> None:
        if len(blobs) == 1:
            data = len(blobs[0]).to_bytes(LENGTH_BYTES, "little") + blobs[0]
        else:
            parts = ((len(blob).to_bytes(LENGTH_BYTES, "little"), blob) for blob in blobs)
            data = b"".join(part for pair in parts for part in pair)
        for connection in self._connections:
            connection.transport.write(data)
        if self._slow:
            await self._writable.wait()

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

    async def join(self, setting: Setting, sink: Sink) -> _Mesh:
        mesh = _Mesh(setting, sink)
        await mesh.join(setting)
        return mesh


SUBJECTS = (Raw(),)
