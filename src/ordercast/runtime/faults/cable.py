"""One connection through a proxy: what happens to bytes between two members.

A cable has two ends and a pipe in each direction. A pipe keeps the order of what it carries, holds
each chunk back for its time, carries nothing while the two are parted, and holds only so much: a
full pipe is not read from, so that its sender feels it as with any slow network.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol, cast

__all__ = ["Cable", "Way"]

PIPE_BYTES = 2**20
"""So much is under way in one direction before the sender has to wait."""
HALF_OPEN_S = 0.1
"""How much later the second end may learn that the connection is broken."""


class Way(Protocol):
    """From one member to another, over all connections: what the network does now."""

    random: Random
    cut: bool
    """Nothing passes."""

    def delay_s(self) -> float: ...

    def loses(self) -> bool: ...

    def lost(self) -> None:
        """A connection has broken because of a loss."""

    def carried(self, size: int) -> None: ...


class Cable:
    """`outer` is the end of who dialled, `inner` that of who is dialled."""

    def __init__(self, *, out: Way, back: Way, on_gone: Callable[[Cable], object]) -> None:
        self.outer, self.inner = _End(), _End()
        self._pipes = _Pipe(self, out, self.inner), _Pipe(self, back, self.outer)
        self.outer.pipe, self.outer.back = self._pipes
        self.inner.back, self.inner.pipe = self._pipes
        self._on_gone = on_gone
        self._timers: set[asyncio.TimerHandle] = set()

    def pump(self) -> None:
        """The network has changed: see what may pass now."""
        for pipe in self._pipes:
            pipe.pump()

    def snap(self, first: _End | None = None) -> None:
        """Break. `first` learns of it at once, the other end maybe a little later."""
        for pipe in self._pipes:
            pipe.snap()
        late = None
        if first is not None and self._pipes[0].way.random.random() < 0.5:
            late = self.inner if first is self.outer else self.outer
        for end in (self.outer, self.inner):
            if end is late:
                loop = asyncio.get_running_loop()
                self._timers.add(loop.call_later(HALF_OPEN_S, end.abort))
            else:
                end.abort()

    def gone(self) -> None:
        """An end is gone. What it had sent still arrives; then the other one is hung up on."""
        if self.outer.gone and self.inner.gone:
            for pipe in self._pipes:
                pipe.snap()
            for timer in self._timers:
                timer.cancel()
            self._on_gone(self)


class _End(asyncio.Protocol):
    """Where a cable is plugged into one of the members."""

    pipe: _Pipe
    """Takes what comes from this member."""
    back: _Pipe
    """Brings what is for it."""

    def __init__(self) -> None:
        self.gone = False
        self.transport: asyncio.Transport | None = None
        self._writable = False

    @property
    def takes_more(self) -> bool:
        return self._writable and self.transport is not None and not self.transport.is_closing()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif not self.gone:  # never plugged in, and never will be
            self.connection_lost(None)

    def hang_up(self) -> None:
        """Once everything that was written is on its way."""
        if self.transport is not None:
            self.transport.close()
        else:
            self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self.gone:
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=0)  # what waits, waits where it can be stopped
        self._writable = True
        self.back.pump()

    def data_received(self, data: bytes) -> None:
        self.pipe.put(data)

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self.back.pump()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.gone:
            self.gone = True
            self._writable = False
            self.pipe.end()
            self.pipe.cable.gone()


class _Pipe:
    def __init__(self, cable: Cable, way: Way, to: _End) -> None:
        self.cable = cable
        self.way = way
        self._to = to
        self._chunks: deque[tuple[float, bytes, bool]] = deque()
        """When each is due, and whether it is one that is lost."""
        self._bytes = 0
        self._last_due = 0.0
        self._ended = False
        """Nothing more comes: the sender has hung up, or the connection breaks further on."""
        self._broken = False
        self._timer: asyncio.TimerHandle | None = None

    def put(self, chunk: bytes) -> None:
        if self._ended or self._broken or self._to.gone:
            return
        now = asyncio.get_running_loop().time()
        self._last_due = max(self._last_due, now + self.way.delay_s())
        lost = self.way.loses()
        self._chunks.append((self._last_due, chunk, lost))
        self._bytes += len(chunk)
        self._ended = lost
        self.pump()
        self._read_on()

    def end(self) -> None:
        self._ended = True
        self.pump()

    def snap(self) -> None:
        """Nothing more comes out of it."""
        self._broken = True
        self._chunks.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def pump(self) -> None:
        """Hand on what is due, as far as the network lets it and the other end takes it."""
        if self.way.cut or self._broken:
            return
        loop = asyncio.get_running_loop()
        while self._chunks and self._to.takes_more:
            due, chunk, lost = self._chunks[0]
            if due > loop.time():
                self._wake_at(due)
                return
            self._chunks.popleft()
            self._bytes -= len(chunk)
            self._hand_on(chunk, lost=lost)
        self._read_on()
        if self._ended and not self._chunks and not self._broken:
            self._to.hang_up()

    def _hand_on(self, chunk: bytes, *, lost: bool) -> None:
        assert self._to.transport is not None
        if lost:  # from somewhere within this chunk on
            chunk = chunk[: self.way.random.randrange(len(chunk))]
        self._to.transport.write(chunk)
        self.way.carried(len(chunk))
        if lost:
            self.way.lost()
            self.cable.snap(first=self._to)

    def _read_on(self) -> None:
        sender = self._sender.transport
        if sender is not None and not sender.is_closing():
            if self._bytes >= PIPE_BYTES:
                sender.pause_reading()
            elif self._bytes < PIPE_BYTES // 2:
                sender.resume_reading()

    @property
    def _sender(self) -> _End:
        return self.cable.outer if self._to is self.cable.inner else self.cable.inner

    def _wake_at(self, due: float) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(due, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self.pump()
