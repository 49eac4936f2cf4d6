"""NATS core: every member publishes to one subject that all subscribe to, without echo.

One server, plain TCP, no storage: at most once, order per sender. A server cuts off whoever reads
too slowly, so the harness keeps senders within a window.

`nats` is the official client. `nats, bare` is what remains of a client if one writes it for speed:
one write for a burst, and a parser that knows the line it has seen last.
"""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from benchmarks.runtime.peers.meeting import everyone_is_here
from benchmarks.runtime.processes import free_addresses, started, until_listening
from benchmarks.runtime.sink import Sink
from benchmarks.runtime.subject import BURSTS, FRAMES, Alone, Member, Servers, Setting

__all__ = ["SUBJECTS"]

PROGRAM = "nats-server"
SUBJECT = "b"
BUFFER_BYTES = 1 << 19


class _Bare(asyncio.BufferedProtocol):
    """A connection to the server: PUB out, MSG in."""

    transport: asyncio.Transport

    def __init__(self, sink: Sink) -> None:
        self._take = sink.take
        self._buffer = bytearray(BUFFER_BYTES)
        self._filled = 0
        self._line = b"never seen"
        self._size = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self.subscribed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(
            b'CONNECT {"verbose":false,"pedantic":false,"echo":false,"lang":"python","version":"0",'
            b'"protocol":1}\r\nSUB %s 1\r\nPING\r\n' % SUBJECT.encode()
        )

    def get_buffer(self, hint: int) -> memoryview:
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, count: int) -> None:
        buffer, start, end = self._buffer, 0, self._filled + count
        while start < end:
            if buffer.startswith(self._line, start):
                body = start + len(self._line)
            else:
                body = buffer.find(b"\r\n", start, end) + 2
                if body < 2:
                    break
                if not self._learn(bytes(buffer[start:body])):
                    start = body
                    continue
            after = body + self._size + 2
            if after > end:
                break
            self._take(buffer[body : after - 2])
            start = after
        self._filled = end - start
        if start and start < end:
            buffer[: self._filled] = buffer[start:end]

    def _learn(self, line: bytes) -> bool:
        """Whether this line announces a message."""
        if line.startswith(b"MSG "):
            self._line, self._size = line, int(line.rsplit(b" ", 1)[1])
            return True
        if line == b"PING\r\n":
            self.transport.write(b"PONG\r\n")
        elif line == b"PONG\r\n":
            self.subscribed.set()
        elif line.startswith(b"-ERR"):
            raise ConnectionError(line.decode())
        return False

    async def publish(self, blobs: Sequence[bytes]) -> None:
        lines = {size: b"PUB %s %d\r\n" % (SUBJECT.encode(), size) for size in set(map(len, blobs))}
        self.transport.write(
            b"".join([part for blob in blobs for part in (lines[len(blob)], blob, b"\r\n")])
        )
        await self._writable.wait()

    async def close(self) -> None:
        self.transport.abort()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()


class _Official:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def publish(self, blobs: Sequence[bytes]) -> None:
        for blob in blobs:
            await self._client.publish(SUBJECT, blob)

    async def close(self) -> None:
        await self._client.close()


class _Nats(Alone):
    order = "fifo"
    forms = (BURSTS, FRAMES)
    window = 8192

    def missing(self) -> str | None:
        if shutil.which(PROGRAM) is None:
            return f"there is no {PROGRAM}: apt-get install nats-server"
        return None

    @asynccontextmanager
    async def servers(self, setting: Setting) -> AsyncIterator[Servers]:
        (address,) = free_addresses(1)
        host, _, port = address.rpartition(":")
        command = [PROGRAM, "--addr", host, "--port", port]
        async with started(command, setting.directory / "nats.log") as server:
            await until_listening(address, server)
            yield Servers(pids=[server.pid], words={"server": address})


class BareNats(_Nats):
    name = "nats, bare"
    remarks = "a client written for this, one write for a burst"

    async def join(self, setting: Setting, sink: Sink) -> Member:
        host, _, port = setting.words["server"].rpartition(":")
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: _Bare(sink), host, int(port))
        await client.subscribed.wait()
        await everyone_is_here(setting)
        return client


class OfficialNats(_Nats):
    name = "nats"
    remarks = "nats-py"

    def missing(self) -> str | None:
        if importlib.util.find_spec("nats") is None:
            return "there is no nats-py: pip install -r requirements-bench.txt"
        return super().missing()

    async def join(self, setting: Setting, sink: Sink) -> Member:
        import nats

        client = await nats.connect(f"nats://{setting.words['server']}", no_echo=True)

        async def take(message: Any) -> None:
            sink.take(message.data)

        # Its own limits are for slow readers, which the window keeps away.
        await client.subscribe(SUBJECT, cb=take, pending_msgs_limit=0, pending_bytes_limit=0)
        await client.flush()
        await everyone_is_here(setting)
        return _Official(client)


SUBJECTS = (BareNats(), OfficialNats())
