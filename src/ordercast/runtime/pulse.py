"""Heartbeats: ours, so that the others know we are alive, and theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ordercast.runtime.detector import Attention

if TYPE_CHECKING:
    from ordercast.runtime.node import Node
    from ordercast.runtime.peer import Peer
    from ordercast.trace.span_log import SpanLog

__all__ = ["Pulse"]

BACK_WITHIN_BEATS = 2
"""Whoever is there makes a broken connection anew in much less than that."""


class Pulse:
    def __init__(self, node: Node, peers: Mapping[int, Peer]) -> None:
        self._node = node
        self._peers = peers
        self._every_s = node.settings.heartbeat_s
        self._attention = Attention(2 * self._every_s, asyncio.get_running_loop().time())
        self._timer: asyncio.TimerHandle | None = None
        self.log: SpanLog | None = None
        """What this member writes for the trace: looked after like the journal."""
        self.lag_s = 0.0
        """How late the last heartbeat was: how long the loop had been busy with other things."""

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def beat(self) -> None:
        """Show that we are alive, and see who else is; again and again until stopped."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._timer is not None:
            self.lag_s = max(now - self._timer.when(), 0.0)
        self._timer = loop.call_later(self._every_s, self.beat)
        try:
            self._look_around(now)
        except Exception as bug:
            self._node.fail(bug)

    def _look_around(self, now: float) -> None:
        missed_since = self._attention.missed_since(now)
        for peer in self._peers.values():
            if missed_since is not None:  # it is we who were away
                peer.detector.pause(missed_since)
                peer.detector.resume(now)
                if peer.lost_at is not None:
                    peer.lost_at = now
            if peer.spoke:
                peer.spoke = False
                peer.detector.heard(now)
            if peer.silent:
                peer.acknowledge()
            peer.silent = True
            if peer.index in self._node.core.lives and not peer.dead:
                self._look_at(peer, now)
        self._node.company.look(now)
        if self._node.journal is not None:
            self._node.journal.look()
        if self.log is not None:
            self.log.look()

    def _look_at(self, peer: Peer, now: float) -> None:
        node = self._node
        gone = peer.broken_s(now) > BACK_WITHIN_BEATS * self._every_s
        still = peer.suspected and peer.connection is None
        if gone or still or peer.detector.suspects(now):
            node.company.suspect(peer.index)
            if peer.connection is not None:  # it may be dead at the other end only: make a new one
                peer.connection.abort()
        else:
            node.company.trust(peer.index)
        if not peer.suspected and not node.outgoing.stuck_on(peer.index):
            peer.stuck_since = None
        elif peer.stuck_since is None:
            peer.stuck_since = now
        limit = node.patience_s
        if limit is not None and peer.stuck_since is not None and now - peer.stuck_since > limit:
            why = "not heard of" if peer.suspected else "took nothing"
            node.company.bury(peer.index, f"{why} for {limit:g} s")
