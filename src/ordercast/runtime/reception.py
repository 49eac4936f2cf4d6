"""What connections ask of their member: who is let in, who is there, and who has gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ordercast.errors import PeerError
from ordercast.runtime.connection import Connection, FinalPeerError
from ordercast.runtime.frames import VERSION, Hello
from ordercast.runtime.introduction import check_belonging, check_continuity

if TYPE_CHECKING:
    from ordercast.runtime.door import Door
    from ordercast.runtime.node import Node
    from ordercast.runtime.peer import Peer

__all__ = ["Reception"]

CLOSE_TIMEOUT_S = 0.5
STRANGERS_MAX = 64
"""Connections that have not introduced themselves, beside those that members may be making."""


class Reception:
    def __init__(self, node: Node, door: Door, peers: Mapping[int, Peer], *, charter: str) -> None:
        self.node = node
        self.door = door
        self.charter = charter
        self.connections: dict[Connection, None] = {}
        """In the order in which they came: that of a set would be another in each run."""
        self._peers = peers

    def opened(self, connection: Connection) -> bool:
        """Whether there is room for one more who has not introduced itself yet."""
        self.connections[connection] = None
        strangers = sum(not each.greeted for each in self.connections)
        return strangers <= STRANGERS_MAX + len(self.node.names)

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)

    def hello(self, peer: Peer) -> Hello:
        received, sent = peer.link.greet()
        node, group = self.node, self.door.group
        core, known, told_bytes = node.core, peer.link.known, node.settings.told_bytes
        return Hello(
            *(VERSION, group, self.charter, node.me, core.life, received, sent),
            *(core.session, known, told_bytes),
        )

    def introduction(self) -> Hello:
        """Who we are, and no more: a hello without a life comes before a last word."""
        return Hello(VERSION, self.door.group, self.charter, self.node.me, "", 0, 0)

    def obituary(self, peer: Peer) -> str:
        return f"{self.node.name} declared {peer.name} dead"

    def recognise(
        self, hello: Hello, transport: asyncio.Transport, *, dialled: Peer | None
    ) -> Peer:
        """Who has introduced itself, or why it is not let in."""
        peer = self.identify(hello, transport, dialled=dialled)
        if peer.dead:
            raise FinalPeerError(self.obituary(peer))
        check_continuity(hello, peer.name, self.node.core.lives.get(peer.index))
        return peer

    def identify(self, hello: Hello, transport: asyncio.Transport, *, dialled: Peer | None) -> Peer:
        """Who it is that speaks, whether or not it may come in."""
        node = self.node
        check_belonging(hello, node.name, self.door.group, self.charter)
        if dialled is None and not node.me < hello.member < len(node.names):
            raise PeerError(
                f"it says it is {self._name_of(hello.member)}, who has no business to dial us"
            )
        peer = dialled or self._peers[hello.member]
        if hello.member != peer.index:
            raise PeerError(f"{self._name_of(hello.member)} answered where {peer.name} should be")
        self.door.check_name(peer.name, transport)
        return peer

    def hang_up(self) -> None:
        """On everyone, without a word: whoever may come back does, and loses nothing."""
        for connection in self.connections:
            connection.abort()

    async def close(self) -> None:
        """Let nobody in any more, and hang up on everyone, politely and then not."""
        self.door.vacate(self.node)
        for peer in self._peers.values():
            if peer.connection is not None:
                peer.connection.part(f"{self.node.name} leaves")
        for end in (Connection.close, Connection.abort):
            for connection in self.connections:
                end(connection)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    for connection in list(self.connections):
                        await connection.gone.wait()
        await self.door.vacated()

    def abort(self) -> None:
        self.door.vacate(self.node)
        self.hang_up()

    def _name_of(self, index: int) -> str:
        names = self.node.names
        return names[index] if index < len(names) else f"member {index}"
