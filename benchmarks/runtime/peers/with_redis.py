"""Redis pub/sub: a channel for each member, the others subscribe to it.

One server, plain TCP, no storage: at most once, order per sender. A server cuts off whoever reads
too slowly, so the harness keeps senders within a window.

`redis` is the official client, which pipelines a burst and parses with hiredis. `redis, bare` is
hiredis alone: one write for a burst, and the parser on what the socket gives.
"""

from __future__ import annotations

import asyncio
import contextlib
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

PROGRAM = "redis-server"


def _channels(setting: Setting) -> list[str]:
    return [f"c{other}" for other in range(setting.n) if other != setting.me]


class _Sender(asyncio.Protocol):
    """PUBLISH out; the counts that come back are thrown away."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        pass

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def write(self, data: bytes) -> None:
        self.transport.write(data)
        await self._writable.wait()


class _Receiver(asyncio.Protocol):
    def __init__(self, sink: Sink, channels: list[str]) -> None:
        import hiredis

        self._sink = sink
        self._channels = channels
        self._missing = len(channels)
        self._parser = hiredis.Reader()
        self.subscribed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(f"SUBSCRIBE {' '.join(self._channels)}\r\n".encode())

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        gets, take = self._parser.gets, self._sink.take
        while (reply := gets()) is not False:
            if reply[0] == b"message":
                take(reply[2])
            else:
                self._missing -= 1
                if not self._missing:
                    self.subscribed.set()


class _Bare:
    def __init__(self, sender: _Sender, receiver: _Receiver, me: int) -> None:
        self._sender, self._receiver = sender, receiver
        channel = f"c{me}"
        self._head = f"*3\r\n$7\r\nPUBLISH\r\n${len(channel)}\r\n{channel}\r\n$".encode()

    async def publish(self, blobs: Sequence[bytes]) -> None:
        heads = {size: b"%s%d\r\n" % (self._head, size) for size in set(map(len, blobs))}
        parts = [part for blob in blobs for part in (heads[len(blob)], blob, b"\r\n")]
        await self._sender.write(b"".join(parts))

    async def close(self) -> None:
        self._sender.transport.abort()
        self._receiver.transport.abort()


class _Official:
    def __init__(self, client: Any, listening: asyncio.Task[None], me: int) -> None:
        self._client, self._listening = client, listening
        self._channel = f"c{me}"

    async def publish(self, blobs: Sequence[bytes]) -> None:
        if len(blobs) == 1:
            await self._client.publish(self._channel, blobs[0])
            return
        async with self._client.pipeline(transaction=False) as pipeline:
            for blob in blobs:
                pipeline.publish(self._channel, blob)
            await pipeline.execute()

    async def close(self) -> None:
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening
        await self._client.aclose()


class _Redis(Alone):
    order = "fifo"
    forms = (BURSTS, FRAMES)
    window = 8192

    def missing(self) -> str | None:
        if shutil.which(PROGRAM) is None:
            return f"there is no {PROGRAM}: apt-get install redis-server"
        if importlib.util.find_spec("hiredis") is None:
            return "there is no hiredis: pip install -r requirements-bench.txt"
        return None

    @asynccontextmanager
    async def servers(self, setting: Setting) -> AsyncIterator[Servers]:
        (address,) = free_addresses(1)
        host, _, port = address.rpartition(":")
        command = [
            *(PROGRAM, "--bind", host, "--port", port, "--save", "", "--appendonly", "no"),
            *("--daemonize", "no", "--dir", setting.place),
            *("--client-output-buffer-limit", "pubsub 0 0 0"),
        ]
        async with started(command, setting.directory / "redis.log") as server:
            await until_listening(address, server)
            yield Servers(pids=[server.pid], words={"server": address})


class BareRedis(_Redis):
    name = "redis, bare"
    remarks = "hiredis alone, one write for a burst"

    async def join(self, setting: Setting, sink: Sink) -> Member:
        host, _, port = setting.words["server"].rpartition(":")
        loop = asyncio.get_running_loop()
        _, sender = await loop.create_connection(_Sender, host, int(port))
        _, receiver = await loop.create_connection(
            lambda: _Receiver(sink, _channels(setting)), host, int(port)
        )
        await receiver.subscribed.wait()
        await everyone_is_here(setting)
        return _Bare(sender, receiver, setting.me)


class OfficialRedis(_Redis):
    name = "redis"
    remarks = "redis-py, a pipeline for a burst"

    def missing(self) -> str | None:
        if importlib.util.find_spec("redis") is None:
            return "there is no redis-py: pip install -r requirements-bench.txt"
        return super().missing()

    async def join(self, setting: Setting, sink: Sink) -> Member:
        import redis.asyncio

        host, _, port = setting.words["server"].rpartition(":")
        client = redis.asyncio.Redis(host=host, port=int(port))
        listener = client.pubsub(ignore_subscribe_messages=True)
        await listener.subscribe(*_channels(setting))

        async def listen() -> None:
            async for message in listener.listen():
                sink.take(message["data"])

        listening = asyncio.create_task(listen())
        await everyone_is_here(setting)
        return _Official(client, listening, setting.me)


SUBJECTS = (BareRedis(), OfficialRedis())
