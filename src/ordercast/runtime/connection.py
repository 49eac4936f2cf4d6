"""One connection, TCP or TLS: bytes to frames and back, and the end of who breaks the rules."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from ordercast.errors import PeerError
from ordercast.runtime.frames import (
    Ack,
    Ask,
    Bye,
    Data,
    Fetch,
    Frame,
    FrameBuffer,
    Hello,
    Knock,
    around,
    encode_frame,
)
from ordercast.runtime.link import ForgetfulPeerError
from ordercast.runtime.logs import about

if TYPE_CHECKING:
    from ordercast.runtime.peer import Peer
    from ordercast.runtime.reception import Reception

__all__ = ["Connection", "FinalPeerError", "ForeignPeerError"]

HELLO_TIMEOUT_S = 5.0
"""For whoever comes to the door; whoever was dialled gets more each time that it is too busy."""
HELLO_DOUBLED_MAX = 4
LATE_S = 0.5
"""A timer that is so late says that this process was too busy to read what may have come."""
WRITE_BYTES = 2**20
"""So much may wait in the transport; the rest waits in the link."""
LONG_BYTES = 2**15
"""A packet as long as this is written from where it is."""
LITTLE_BYTES = 1024
"""Whoever sends as little as this may well be waited for: it is seen to at once. What more brings
is committed together with what comes from others in the same turn."""

logger = logging.getLogger(__name__)


class FinalPeerError(PeerError):
    """What this peer is cannot change while it lives: it need not dial again."""


class ForeignPeerError(PeerError):
    """As things are it does not belong here: it is told so, and may come again."""


class Connection(asyncio.BufferedProtocol):
    """`dialled` is whom we meant to reach; None if they reached us."""

    def __init__(self, reception: Reception, dialled: Peer | None = None) -> None:
        self.gone = asyncio.Event()
        self.writable = False
        self._reception = reception
        self._host = reception.node
        self._dialled = dialled
        self._peer: Peer | None = None
        self._doubted: Peer | None = None
        """Who has said hello and knows more of us than we do."""
        self._doubt: PeerError | None = None
        self._introduced: Peer | None = None
        """Who has said and proven who it is, not to come in but to have its last word believed."""
        self._known = False
        """Whether we have said who we are."""
        self._transport: asyncio.Transport
        self._hello_timer: asyncio.TimerHandle
        self._buffer = FrameBuffer()

    @property
    def greeted(self) -> bool:
        """Whether the other side has introduced itself."""
        return self._peer is not None

    def write(self, frame: Frame) -> None:
        """Nothing, if the connection has just broken: the link keeps what has to arrive."""
        if self._transport.is_closing():
            return
        if type(frame) is Data and len(frame.packets[-1]) >= LONG_BYTES and len(frame.packets) == 1:
            before, after = around(frame)
            self._transport.writelines((before, frame.packets[0], after))
        else:
            self._transport.write(encode_frame(frame))

    def close(self) -> None:
        """Hang up once everything that was written is on its way."""
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def part(self, reason: str, *, final: bool = False) -> None:
        """Say why, and hang up."""
        if not self._transport.is_closing():
            self._say_bye(reason, final=final)
            self._transport.close()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has another class
        self._transport.set_write_buffer_limits(high=WRITE_BYTES)
        self.writable = True
        if self._dialled is not None:
            self._dialled.trouble = None
        self._await_hello()
        if not self._reception.opened(self):
            self.refuse(PeerError("too many at the door have not said who they are"))
        elif self._dialled is not None and self._dialled.dead:
            # It hangs up, or has something to say on its part.
            self._say_bye(self._reception.obituary(self._dialled), final=True)
        elif self._dialled is not None:
            self._say_hello(self._dialled)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer.room()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            self._read(nbytes)
        except PeerError as error:
            self.refuse(error)
        except Exception as bug:  # not the peer's fault: the node cannot go on as if it were
            self._host.fail(bug)
            self.abort()

    def eof_received(self) -> None:
        if self._dialled is not None and self._peer is None:
            self._host.company.left_waiting(self._dialled)

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None:  # it had something of ours to read when it hung up
            self.eof_received()
        self._hello_timer.cancel()
        self.writable = False
        self.gone.set()
        self._reception.closed(self)
        if self._peer is not None and self._peer.detach(self):
            self._host.company.lost(self._peer)

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        if self._peer is not None:
            self._peer.pump()

    # Frames.

    def _read(self, nbytes: int) -> None:
        news = False
        for frame in self._buffer.filled(nbytes):
            self._take(frame)
            news = news or type(frame) is not Ack
            if self._transport.is_closing():
                return
        if self._peer is not None:
            self._peer.spoke = True
            if not news:
                return
            if nbytes <= LITTLE_BYTES:
                self._host.turn.commit()
            else:
                self._host.stir()

    def _take(self, frame: Frame) -> None:
        peer = self._peer
        if type(frame) is Data and peer is not None:
            self._host.intake.take(peer, frame)
        elif type(frame) is Ack and peer is not None:
            peer.acknowledged(frame)
        elif isinstance(frame, Hello):
            self._greet(frame)
        elif isinstance(frame, Bye):
            self._farewell(frame)
        elif isinstance(frame, Ask | Knock | Fetch) and peer is None and self._dialled is None:
            self._answer(frame)
        elif peer is None:
            raise PeerError(f"a {type(frame).__name__} frame came before any hello")
        else:
            raise PeerError(f"a {type(frame).__name__} frame is out of place here")

    def _answer(self, frame: Ask | Knock | Fetch) -> None:
        """To somebody who calls without coming in. Whoever fetches will want the next piece."""
        if not self.writable:
            raise PeerError("it asks for more than it reads")
        self._hello_timer.cancel()
        self.write(self._reception.door.answer(frame, self._transport))
        if isinstance(frame, Fetch):
            self._await_hello()
        else:
            self.close()

    def _await_hello(self) -> None:
        loop, patience_s = asyncio.get_running_loop(), HELLO_TIMEOUT_S
        if self._dialled is not None:
            patience_s *= 2 ** min(self._dialled.hellos_missed, HELLO_DOUBLED_MAX)
        due = loop.time() + patience_s
        self._hello_timer = loop.call_at(due, self._hello_missing, due, patience_s)

    def _greet(self, hello: Hello) -> None:
        if self._peer or self._doubted or self._introduced:
            raise PeerError("a second hello came on the same connection")
        if not hello.life:
            self._introduced = self._reception.identify(
                hello, self._transport, dialled=self._dialled
            )
            return
        peer = self._reception.recognise(hello, self._transport, dialled=self._dialled)
        # What came on an older connection comes before what this one brings.
        self._host.intake.see_to_all()
        try:
            peer.link.resume(hello.received, hello.sent, hello.session, hello.known)
        except ForgetfulPeerError:
            raise
        except PeerError as doubt:
            if self._dialled is not None:
                raise
            # It may be lying, or it is we who have forgotten: then our hello will show it, and it
            # gets until the end of its time to say so.
            self._doubt, self._doubted = doubt, peer
            self._say_hello(peer)
            return
        self._hello_timer.cancel()
        self._buffer.trust()
        self._peer = peer
        peer.attach(self)
        if self._dialled is None:
            self._say_hello(peer)
        self._host.company.met(peer, hello)

    def _farewell(self, bye: Bye) -> None:
        peer = self._peer or self._doubted or self._introduced
        if peer is not None:
            self._host.company.parted(peer, bye)
            if peer.dead and not self._known:  # each has given the other up, and is told so
                self.part(self._reception.obituary(peer), final=True)
        elif self._dialled is not None:
            self._host.company.turned_down(self._dialled, bye)
        self.close()

    def _say_hello(self, peer: Peer) -> None:
        self._known = True
        self.write(self._reception.hello(peer))

    def _say_bye(self, reason: str, *, final: bool) -> None:
        """The last word is believed of those alone who have said who they are."""
        if final and not self._known:
            self._known = True
            self.write(self._reception.introduction())
        self.write(Bye(reason[:300], final))

    def _hello_missing(self, due: float, patience_s: float) -> None:
        if self._dialled is not None and self._dialled.dead:
            self.close()
            return
        if asyncio.get_running_loop().time() - due > LATE_S:
            self._await_hello()
            return
        if self._dialled is not None:
            self._dialled.hellos_missed += 1
        self.refuse(self._doubt or PeerError(f"no hello came within {patience_s:g} s"))

    def refuse(self, reason: PeerError) -> None:
        """The other end has broken the rules: hang up, and note why."""
        peer = self._peer or self._dialled or self._doubted
        who = "a stranger" if peer is None else peer.name
        address = self._transport.get_extra_info("peername")
        door = self._reception.door
        # Whoever does not belong here dials again and again, until somebody has mended that; where
        # members come and go, some do not know yet where the others have gone.
        again = door.host is not None or door.last_refused == str(reason)
        known = isinstance(reason, ForeignPeerError) and again
        door.turn_away(reason)
        more = None if known else door.sparing.end_of_line((type(reason).__name__, who))
        logger.log(
            logging.DEBUG if more is None else logging.WARNING,
            "%s: dropped the connection with %s at %s: %s%s",
            *(self._host.name, who, address, reason, more or ""),
            extra=about(
                "refused", self._host.name, None if peer is None else peer.name, group=door.group
            ),
        )
        if isinstance(reason, ForgetfulPeerError):
            self.part(
                "it has forgotten what it did last: its journal is older than what "
                f"{self._host.name} has of it",
                final=True,
            )
        elif isinstance(reason, FinalPeerError):
            self.part(str(reason), final=True)
        elif isinstance(reason, ForeignPeerError):
            self.part(str(reason))
        else:
            self.abort()
