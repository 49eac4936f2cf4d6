"""The network of a story: streams of bytes that keep their order and take their time, as TCP's."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections import deque
from collections.abc import Callable, Collection
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any

from ordercast.errors import UsageError
from ordercast.testing.loop import process_of

if TYPE_CHECKING:
    from ordercast.testing.loop import VirtualLoop

__all__ = ["Network", "Server", "Transport"]

RESEND_S = 0.2
"""After which TCP sends again what was lost."""
CONNECT_S = 127.0
"""After which it gives up to connect."""
BUFFER_BYTES = 64 << 10
FIRST_PORT = 49152
_ANYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - nobody is there

Where = tuple[str, int]


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

    def vacate(self, where: Where) -> None:
        self._listening.pop(where, None)

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
        if (process := process_of(self.context)) is not None:
            process.servers.append(self)

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
        if not self._closed.done():
            self._closed.set_result(None)

    def vanish(self) -> None:
        self._serving = False
        self._network.vacate(self._where)

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


_END = object()
"""The other side writes no more."""
_RESET = object()
"""The other side is gone."""


class Transport(asyncio.Transport):
    """One end of a connection. What is written here arrives there, later and in order."""

    other: Transport

    def __init__(
        self, network: Network, protocol: Any, context: Context, own: Where, theirs: Where
    ) -> None:
        super().__init__({"sockname": own, "peername": theirs})
        self.protocol = protocol
        self._network = network
        self._loop = network.loop
        self._context = context
        self._closing = self._lost = self._ended = False
        self._under_way: deque[tuple[float, Any]] = deque()
        """What has left here and is not there yet, in order, and when it is. Where there is any, it
        is waited for, or for a way."""
        self._arrives_at = 0.0
        self._bytes = 0
        """Of that."""
        self._high, self._low = BUFFER_BYTES, BUFFER_BYTES // 4
        self._waits = False
        self._reading = True
        self._unread: deque[Any] = deque()
        if (process := process_of(context)) is not None:
            process.transports.append(self)

    # What asyncio's protocols call.

    def get_protocol(self) -> Any:
        return self.protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._loop.call_soon(self._read, context=self._context)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high if high is not None else 4 * low if low is not None else BUFFER_BYTES
        self._low = low if low is not None else self._high // 4

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return self._bytes

    def can_write_eof(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self._ended or not data:
            return
        self._bytes += len(data)
        self._send(bytes(data))
        if self._bytes > self._high and not self._waits:
            self._waits = True
            self.protocol.pause_writing()

    def write_eof(self) -> None:
        if not self._ended:
            self._ended = True
            self._send(_END)

    def close(self) -> None:
        if not self._closing:
            self.write_eof()
            self._lose(None)

    def abort(self) -> None:
        if not self._lost:
            self._send(_RESET)
            self._lose(None)

    # What happens between the two ends.

    def vanish(self, *, silently: bool) -> None:
        """Its process was killed: nothing happens here any more."""
        if not self._lost:
            self._closing = self._lost = True
            if not silently:
                self._send(_RESET)

    def _send(self, item: Any) -> None:
        self._arrives_at = max(self._arrives_at, self._loop.time() + self._network.takes_s())
        self._under_way.append((self._arrives_at, item))
        if len(self._under_way) == 1:
            self._loop.call_at(self._arrives_at, self._step, context=_NOBODY)

    def go_on(self) -> None:
        """There may be a way again."""
        soon = self._loop.time() + self._network.takes_s()
        self._arrives_at = max(self._arrives_at, soon)
        self._loop.call_at(soon, self._step, context=_NOBODY)

    def _step(self) -> None:
        """What has come so far arrives, if there is a way; the next one is waited for."""
        if not self._network.passes(self._context, self.other._context):
            self._network.stuck(self)
            return
        now, there = self._loop.time(), self.other
        while self._under_way and self._under_way[0][0] <= now:
            _, item = self._under_way.popleft()
            self._loop.call_soon(there._arrive, item, context=there._context)
        if self._under_way:
            self._loop.call_at(self._under_way[0][0], self._step, context=_NOBODY)

    def _arrive(self, item: Any) -> None:
        """In the process that it is meant for, whenever that runs."""
        self._unread.append(item)
        self._read()

    def _read(self) -> None:
        while self._unread and self._reading:
            item = self._unread.popleft()
            if isinstance(item, bytes):
                self.other._was_read(len(item))
            if self._lost:
                continue
            if item is _RESET:
                self._lose(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
            elif item is _END:
                if not self.protocol.eof_received():
                    self.close()
            elif not self._closing:
                _hand_over(self.protocol, item)

    def _was_read(self, size: int) -> None:
        self._bytes -= size
        if self._waits and self._bytes <= self._low and not self._closing:
            self._waits = False
            self._loop.call_soon(self.protocol.resume_writing, context=self._context)

    def _lose(self, error: Exception | None) -> None:
        self._closing = True
        if not self._lost:
            self._lost = True
            self._loop.call_soon(self._gone, error, context=self._context)

    def _gone(self, error: Exception | None) -> None:
        self.protocol.connection_lost(error)
        if (process := process_of(self._context)) is not None:
            process.transports.remove(self)


_NOBODY = Context()
"""What is under way belongs to no process: it goes on, whoever is paused or killed."""


def _hand_over(protocol: Any, data: bytes) -> None:
    if not isinstance(protocol, asyncio.BufferedProtocol):
        protocol.data_received(data)
        return
    while data:
        room = memoryview(protocol.get_buffer(len(data)))
        size = min(len(room), len(data))
        room[:size] = data[:size]
        protocol.buffer_updated(size)
        data = data[size:]


def _where(host: Any, port: Any) -> Where:
    return ("127.0.0.1" if host == "localhost" else str(host or "")), int(port)


def _refuse_tls(ssl: object) -> None:
    if ssl:
        raise UsageError("there is no TLS in a story, where nobody listens in: leave the keys out")
