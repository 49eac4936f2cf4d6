"""Where a member listens, from before it knows who the others are.

Until then, whoever asks is told which members are known, and whoever wants in has to come again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from socket import gaierror
from typing import TYPE_CHECKING, Protocol

from ordercast.errors import PeerError, UsageError
from ordercast.runtime.complaints import Complaints
from ordercast.runtime.connection import Connection
from ordercast.runtime.discovery import Address, Answer, Finder, check_reachable
from ordercast.runtime.discovery.address import words
from ordercast.runtime.frames import (
    HELLO_BYTES_MAX,
    LENGTH,
    VERSION,
    Ask,
    Bye,
    Fetch,
    Frame,
    Knock,
    Members,
    decode_frame,
    encode_frame,
    wrong_length,
)
from ordercast.runtime.handshakes import Handshakes
from ordercast.runtime.keys import check_name, peer_name
from ordercast.runtime.logs import about
from ordercast.runtime.revoked import RevokedList
from ordercast.runtime.sparing import Sparing

if TYPE_CHECKING:
    from ordercast.runtime.keys import Credentials
    from ordercast.runtime.node import Node

__all__ = ["Door", "Host", "read_frame"]

ASK_TIMEOUT_S = 5.0
LOOK_EVERY_S = 2.0
"""How often to see whether certificates have been revoked."""
BACKLOG = 1024
"""So many may have dialled and not been looked at yet: in a large group all come at once."""

logger = logging.getLogger(__name__)


class ImpostorError(PeerError):
    """Its certificate is another's: a line in the log that no other stranger silences."""


class Host(Protocol):
    """Who answers where members come and go. The name of whoever calls is proven by then."""

    def knocked(self, knock: Knock) -> Frame: ...

    def fetched(self, fetch: Fetch) -> Frame: ...


class Door:
    def __init__(self, group: str, name: str, *, credentials: Credentials | None = None) -> None:
        self.group = group
        self.name = name
        self.credentials = credentials
        self.node: Node | None = None
        """Who takes the connections, once there is one."""
        self.host: Host | None = None
        """Who answers those who come and go, where that can be. Such a door stays open when the
        node behind it leaves: there will be another."""
        self.finder: Finder | None = None
        """What is known of the members, and told to whoever asks."""
        self.address: Address | None = None
        """Where others reach us."""
        self.turned_away = 0
        """Connections that ended because the other side broke the rules."""
        self.last_refused: str | None = None
        """Why the last one of them did."""
        self.handshakes = Handshakes(group, name)
        self.sparing = Sparing()
        """With lines about those that were turned away."""
        self._server: asyncio.Server | None = None
        self._complaints: Complaints | None = None
        self._revoked = RevokedList(credentials) if credentials is not None else None
        self._next_look: asyncio.TimerHandle | None = None
        self._waiting: dict[asyncio.WriteTransport, None] = {}

    async def open(self, host: str, port: int = 0) -> Address:
        loop = asyncio.get_running_loop()
        if self.credentials is not None:
            self._stamp(self.credentials)
            self._look_at_revoked()
        try:
            # It serves once it is known here: whoever is cancelled meanwhile has it closed.
            self._server = await loop.create_server(
                self._protocol,
                host,
                port,
                backlog=BACKLOG,
                ssl=self.credentials.server if self.credentials else None,
                ssl_handshake_timeout=ASK_TIMEOUT_S if self.credentials else None,
                start_serving=False,
            )
            self._complaints = Complaints.of(loop)
            self._complaints.ours = (Connection, _Caller)
            self._complaints.heed(self._server, self.group, self.name)
            await self._server.start_serving()
        except OSError as error:
            why = error.strerror if isinstance(error, gaierror) else os.strerror(error.errno or 0)
            raise UsageError(f"{self.name} cannot listen at {host}:{port}: {why}") from error
        return Address(host, self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        if self._server is not None:
            self._server.close()
            if self._complaints is not None:
                self._complaints.forget(self._server)
        for transport in self._waiting:
            transport.abort()

    async def wait_closed(self) -> None:
        if self._server is not None:
            await self._server.wait_closed()

    def vacate(self, node: Node) -> None:
        """The node leaves, and lets nobody in any more."""
        if self.host is None:
            self.close()
        elif self.node is node:
            self.node = None

    async def vacated(self) -> None:
        if self.host is None:
            await self.wait_closed()

    def answer(self, frame: Ask | Knock | Fetch, transport: asyncio.BaseTransport) -> Frame:
        """To somebody who calls, without coming in."""
        if frame.version != VERSION or frame.group != self.group:
            raise PeerError(f"it asks for the group {frame.group!r}, and we are {self.group!r}")
        self.check_name(frame.name, transport)
        if isinstance(frame, Ask):
            return self._asked(frame)
        if self.host is None:
            return Bye(f"the members of {self.group!r} do not change")
        return self.host.knocked(frame) if isinstance(frame, Knock) else self.host.fetched(frame)

    def _asked(self, ask: Ask) -> Members:
        """Someone wants to know who the members are, and says where they are themselves."""
        known: dict[str, Address] = {}
        if self.finder is not None:
            if ask.address:
                self.finder.learn(*_caller(ask))
            known |= self.finder.known
        if self.address is not None:
            known[self.name] = self.address
        return Members(self.name, {name: str(address) for name, address in known.items()})

    def _send_off(self, error: PeerError | OSError | EOFError) -> None:
        """Someone who came before there was a node to come in to."""
        reason = error if isinstance(error, PeerError) else PeerError(_words(error))
        self.turn_away(reason)
        more = self.sparing.end_of_line(type(error).__name__)
        logger.log(
            logging.DEBUG if more is None else logging.WARNING,
            "%s: turned someone away at the door: %s%s",
            *(self.name, reason, more or ""),
            extra=about("refused", self.name, group=self.group),
        )

    def turn_away(self, reason: Exception) -> None:
        self.turned_away += 1
        self.last_refused = str(reason)

    def check_name(self, name: str, transport: asyncio.BaseTransport) -> None:
        """A member's name is in its certificate: nobody can speak for another."""
        if self.credentials is not None:
            shown: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
            proven = peer_name(shown, self.group)
            contexts = self.credentials.server, self.credentials.client
            if not isinstance(shown, tuple(context.sslobject_class for context in contexts)):
                raise PeerError("there is a newer list of revoked certificates than it has passed")
            if proven != name:
                raise ImpostorError(f"it says it is {name!r}, and its certificate says {proven!r}")

    async def ask(self, address: Address) -> Answer:
        """Who is at that address, and whom does it know?"""
        ssl_context: ssl.SSLContext | None = self.credentials.client if self.credentials else None
        async with asyncio.timeout(ASK_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(
                address.host, address.port, ssl=ssl_context
            )
            try:
                own = str(self.address) if self.address else ""
                writer.write(encode_frame(Ask(VERSION, self.group, self.name, own)))
                answer = await read_frame(reader)
                if isinstance(answer, Members):
                    self.check_name(answer.name, writer.transport)
            except EOFError:
                raise PeerError(f"{address} hung up without an answer") from None
            finally:
                writer.close()
        if isinstance(answer, Bye):
            raise PeerError(f"{address} does not say who the members are: {answer.reason}")
        if not isinstance(answer, Members):
            raise PeerError(f"{address} answers with a {type(answer).__name__} frame")
        known = {name: _parsed(where) for name, where in answer.addresses.items()}
        return Answer(answer.name, known)

    def _look_at_revoked(self) -> None:
        """If the list has changed, everyone has to show their certificate again."""
        assert self._revoked is not None
        loop = asyncio.get_running_loop()
        self._next_look = loop.call_later(LOOK_EVERY_S, self._look_at_revoked)
        if self._revoked.renewed():
            assert self.credentials is not None
            self._stamp(self.credentials)
            if self.node is not None:
                self.node.reception.hang_up()

    def _stamp(self, credentials: Credentials) -> None:
        """Tell connections that begin now, by a class of their own, from those that began before:
        a handshake that was under way when a list came may not have looked at it."""
        self.handshakes.watch(credentials.server, timeout_s=ASK_TIMEOUT_S)
        credentials.client.sslobject_class = type("Calling", (ssl.SSLObject,), {})

    def _protocol(self) -> asyncio.BaseProtocol:
        if self.node is not None:
            return Connection(self.node.reception)
        reader = asyncio.StreamReader(limit=HELLO_BYTES_MAX)
        return _Caller(reader, self._receive)

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Nobody can come in yet, but everyone may ask."""
        transport = writer.transport
        self._waiting[transport] = None
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                frame = await read_frame(reader)
            if isinstance(frame, Ask | Knock | Fetch):
                writer.write(encode_frame(self.answer(frame, transport)))
            else:
                writer.write(encode_frame(Bye(f"{self.name} is still looking for the others")))
        except (PeerError, OSError, EOFError) as error:
            self._send_off(error)
        finally:
            self._waiting.pop(transport, None)
            writer.close()


class _Caller(asyncio.StreamReaderProtocol):
    """Someone at the door while nobody can come in yet."""


async def read_frame(reader: asyncio.StreamReader, *, limit: int = HELLO_BYTES_MAX) -> Frame:
    head = await reader.readexactly(LENGTH)
    length = int.from_bytes(head, "big")
    if not 0 < length <= limit:
        raise wrong_length(head, limit)
    return decode_frame(await reader.readexactly(length))


def _words(error: OSError | EOFError) -> str:
    if isinstance(error, TimeoutError):
        return f"it said nothing that is whole within {ASK_TIMEOUT_S:g} s"
    return words(error) if isinstance(error, OSError) else "it hung up before it had said anything"


def _parsed(address: str) -> Address:
    try:
        return Address.parse(address)
    except UsageError as error:
        raise PeerError(str(error)) from None


def _caller(ask: Ask) -> tuple[str, Address]:
    """Who asks, and where it says it is: a member that cannot be would be told to all others."""
    try:
        return check_name(ask.name), check_reachable(Address.parse(ask.address))
    except UsageError as error:
        raise PeerError(str(error)) from None
