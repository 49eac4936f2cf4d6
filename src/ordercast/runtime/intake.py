"""What has come for the core: packets of peers, and timers that were up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordercast.errors import PeerError
from ordercast.runtime.frames import Data
from ordercast.runtime.inputs import LoggedCore
from ordercast.runtime.peer import Peer

if TYPE_CHECKING:
    from ordercast.runtime.node import Node

__all__ = ["Intake"]

CROWD = 16
"""With so many messages in it, a bundle is not cut short by what arrives."""


class Intake:
    """Whatever comes may deliver something, and so it ends the bundle that is being filled. If
    there is much in that already, it waits until the bundle leaves, so that whoever sends a lot
    sends large bundles; but not if someone waits for word of it."""

    def __init__(self, node: Node, inputs: LoggedCore) -> None:
        self._node = node
        self._outgoing = node.outgoing
        self._core = inputs.core
        self._inputs = inputs
        self._packets: list[tuple[Peer, bytes]] = []
        self._timers: list[str] = []
        """Of the protocol, that were up meanwhile."""
        self.held_max = 0
        """The most that was seen to be held at once."""
        self._held_last = 0
        self._held_unseen = 0

    def take(self, peer: Peer, data: Data) -> None:
        self._packets += [(peer, packet) for packet in peer.link.receive(data)]
        peer.news()
        slot = self._outgoing.slot
        if data.hurry:
            self.see_to_all()
            self._node.turn.hurry(peer)
        elif slot is None or len(slot.payloads) < CROWD:
            self.see_to_all()

    def timer_ended(self, name: str) -> None:
        self._timers.append(name)
        if len(self._outgoing) < CROWD:
            self.see_to_all()

    def see_to_all(self) -> None:
        """Hand what has come to the core, after what is being sent."""
        if self._outgoing.slot is not None:
            self._outgoing.flush()
        if self._timers:
            self._end_timers()
        packets, self._packets = self._packets, []
        take, core = self._inputs.take, self._core
        for peer, packet in packets:
            before = core.delivered
            try:
                take(peer.index, packet)
            except PeerError as error:
                if peer.connection is not None:
                    peer.connection.refuse(error)
            if core.arrivals and core.delivered == before:
                self._look_at_held()

    def _end_timers(self) -> None:
        timers, self._timers = self._timers, []
        for name in timers:
            self._inputs.other("timer", name)
            self._node.stir()

    def _look_at_held(self) -> None:
        """Counting looks at all that is held; so the more there is, the more rarely it is counted,
        and an arrival costs the same however many wait."""
        self._held_unseen += 1
        more_than_ever = len(self._core.arrivals) > self.held_max
        if more_than_ever and self._held_unseen * 4 > self._held_last:
            self._held_last, self._held_unseen = len(self._core.stack.held()), 0
            self.held_max = max(self.held_max, self._held_last)
