"""One connection of a story: two ends, and what is under way between them."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from contextvars import Context
from typing import TYPE_CHECKING, Any

from ordercast.testing.loop import process_of

if TYPE_CHECKING:
    from ordercast.testing.network import Network

__all__ = ["Transport", "Where"]

BUFFER_BYTES = 64 << 10

Where = tuple[str, int]
"""A host and a port."""
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
