"""One TCP connection: frames in, frames out. A peer that breaks the rules loses it, no more."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from ordercast.errors import PeerError
from ordercast.runtime.frames import Ack, Data, Frame, FrameReader, Hello, encode_frame
from ordercast.runtime.peer import Peer

__all__ = ["Connection", "Host"]

HELLO_TIMEOUT_S = 5.0

logger = logging.getLogger(__name__)


class Host(Protocol):
    """What a connection needs of its node."""

    @property
    def name(self) -> str: ...

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...

    def hello(self, peer: Peer) -> Hello: ...

    def recognise(self, hello: Hello, *, dialled: Peer | None) -> Peer:
        """The member that this hello comes from, or a PeerError."""

    def presence_changed(self) -> None: ...

    def take(self, source: int, packet: bytes) -> None:
        """A packet, new and in its place."""

    def fail(self, bug: Exception) -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, host: Host, dialled: Peer | None = None) -> None:
        self._host = host
        self._dialled = dialled
        self._peer: Peer | None = None
        self._reader = FrameReader()
        self._transport: asyncio.Transport
        self._hello_timer: asyncio.TimerHandle
        self.gone = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()

    @property
    def greeted(self) -> bool:
        """Whether the peer has introduced itself, and we have taken its word."""
        return self._peer is not None

    def write(self, frame: Frame) -> None:
        if not self._transport.is_closing():
            self._transport.write(encode_frame(frame))

    def close(self) -> None:
        """Write what is buffered, then end."""
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        loop = asyncio.get_running_loop()
        self._hello_timer = loop.call_later(HELLO_TIMEOUT_S, self._hello_missing)
        self._host.opened(self)
        if self._dialled is not None:
            self.write(self._host.hello(self._dialled))

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                if self._transport.is_closing():
                    return
                self._take(frame)
        except PeerError as error:
            self._refuse(str(error))
        except Exception as bug:  # not the peer's fault: the node cannot go on as if it were
            self._host.fail(bug)
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._hello_timer.cancel()
        self.gone.set()
        self.writable.set()
        self._host.closed(self)
        if self._peer is not None and self._peer.detach(self):
            logger.info("%s: lost the connection with p%d", self._host.name, self._peer.index)
            self._host.presence_changed()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, Hello):
            self._greet(frame)
        elif self._peer is None:
            raise PeerError(f"a {type(frame).__name__} frame came before any hello")
        elif isinstance(frame, Ack):
            self._peer.acknowledged(frame)
        else:
            self._data(self._peer, frame)

    def _data(self, peer: Peer, data: Data) -> None:
        packet = peer.receive(data)
        if packet is not None:
            self._host.take(peer.index, packet)
        # Last, so that the acknowledgement can ride on what this packet made us send.
        peer.acknowledge_soon()

    def _greet(self, hello: Hello) -> None:
        if self._peer is not None:
            raise PeerError("a second hello came on the same connection")
        peer = self._host.recognise(hello, dialled=self._dialled)
        missing = peer.link.resume(hello.received)
        self._hello_timer.cancel()
        self._reader.trust()
        self._peer = peer
        peer.attach(self)
        if self._dialled is None:
            self.write(self._host.hello(peer))
        for data in missing:
            self.write(data)
        self._host.presence_changed()

    def _hello_missing(self) -> None:
        self._refuse(f"no hello came within {HELLO_TIMEOUT_S:g} s")

    def _refuse(self, reason: str) -> None:
        peer = self._peer or self._dialled
        who = "a stranger" if peer is None else f"p{peer.index}"
        address = self._transport.get_extra_info("peername")
        logger.warning(
            "%s: dropped the connection with %s at %s: %s", self._host.name, who, address, reason
        )
        self.abort()
