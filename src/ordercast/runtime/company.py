"""The other members as this one sees them: who is there, who is suspected, who was given up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ordercast.errors import OrdercastError
from ordercast.protocols import catalog
from ordercast.runtime.detector import Detector
from ordercast.runtime.frames import Bye, Hello
from ordercast.runtime.inputs import LoggedCore
from ordercast.runtime.logs import about
from ordercast.runtime.peer import Peer
from ordercast.runtime.weather import Air, Weather

if TYPE_CHECKING:
    from ordercast.runtime.node import Node

__all__ = ["Company"]

IDLE_S = 2.0
"""A program that takes nothing for so long, while its own sending waits for that, hears of it."""

logger = logging.getLogger(__name__)


class Company:
    """Iterates over the peers; `peers` has them by index."""

    def __init__(
        self,
        node: Node,
        inputs: LoggedCore,
        *,
        weather: Weather | None,
        seed: str,
        on_change: Callable[[tuple[int, ...]], object] | None,
    ) -> None:
        """`on_change` is told who is present, each time when anything about anyone changes."""
        self._node = node
        self._core = inputs.core
        self._inputs = inputs
        self._on_change = on_change
        self.peers = {index: self._peer(index, weather, seed) for index in self._core.links}
        self._told_leader: str | None = None
        self._told_waiting: tuple[str, ...] = ()
        self._taken = -1
        """What the application here had taken when it was last all right, and when that was."""
        self._all_right_s = 0.0
        self._told_idle = False

    def __iter__(self) -> Iterator[Peer]:
        return iter(self.peers.values())

    @property
    def present(self) -> tuple[int, ...]:
        """The other members that are connected right now."""
        return tuple(peer.index for peer in self if peer.link.open)

    @property
    def suspected(self) -> tuple[int, ...]:
        return tuple(peer.index for peer in self if peer.suspected)

    @property
    def dead(self) -> tuple[int, ...]:
        return tuple(peer.index for peer in self if peer.dead)

    @property
    def refusals(self) -> dict[str, str]:
        """Members that have hung up on us for good, and what they said."""
        return {peer.name: peer.refused for peer in self if peer.refused}

    @property
    def leader(self) -> str | None:
        """Whom everyone's order depends on now, if on anyone."""
        index = self._core.stack.ordering.coordinator
        return None if index is None else self._node.names[index]

    # What heartbeats tell.

    def look(self, now: float) -> None:
        """Say what may puzzle people: that another leads, and whom a send waits for in vain."""
        self._look_at_ourselves(now)
        name, leader = self._node.name, self.leader
        if leader is not None and leader != self._told_leader:
            logger.info("%s: %s leads", name, leader, extra=self._facts("leader", leader))
        self._told_leader = leader
        away = tuple(
            peer.name
            for peer in self
            if not peer.link.open and not peer.dead and self._node.outgoing.waits_for(peer.index)
        )
        if away and away != self._told_waiting:
            text = (
                f"sending waits until {' and '.join(away)} can take more: nothing is heard of "
                f"{'it' if len(away) == 1 else 'them'}, and window_bytes are under way"
            )
            logger.warning("%s: %s", name, text, extra=self._facts("waits"))
        self._told_waiting = away

    def _look_at_ourselves(self, now: float) -> None:
        """Whoever only sends soon waits for itself."""
        node = self._node
        taken = self._core.standing.taken[node.me]
        if taken != self._taken or not node.outgoing.stuck_on(node.me):
            self._taken, self._all_right_s, self._told_idle = taken, now, False
        elif now - self._all_right_s > IDLE_S and not self._told_idle:
            self._told_idle = True
            text = (
                "sending waits until this program takes what is delivered to it, its own messages "
                f"included: it has taken nothing for {IDLE_S:g} s, and window_bytes are under way"
            )
            logger.warning("%s: %s", node.name, text, extra=self._facts("idle"))

    def suspect(self, process: int) -> None:
        """Someone has reason to think that this member has crashed."""
        peer = self.peers[process]
        if not peer.suspected:
            peer.suspected = True
            why = f": {peer.trouble}" if peer.trouble is not None else ""
            self._note("suspected", peer, f"suspects that {peer.name} is down{why}")
            self._inputs.other("suspect", process)
            self.changed()

    def trust(self, process: int) -> None:
        """A suspicion has proved wrong, or the member is back."""
        peer = self.peers[process]
        if peer.suspected and not peer.dead:
            peer.suspected = False
            self._note("trusted", peer, f"{peer.name} is up after all")
            self._inputs.other("trust", process)
            self.changed()

    def bury(self, process: int, reason: str) -> None:
        """Give a member up for good: nothing is kept for it, and it is not let in again."""
        peer = self.peers[process]
        if not peer.dead:
            self.suspect(process)
            peer.dead = True
            self._note("dead", peer, f"declares {peer.name} dead: {reason}", logging.WARNING)
            if peer.connection is not None:
                name = self._node.name
                peer.connection.part(f"{name} declared {peer.name} dead: {reason}", final=True)
            self._inputs.other("bury", process)
            self._look_at_majority()
            self.changed()

    # What connections tell.

    def met(self, peer: Peer, hello: Hello) -> None:
        if peer.index not in self._core.lives or peer.link.session != hello.session:
            self._inputs.other("meet", peer.index, hello.life, hello.session)
        peer.refused = peer.trouble = peer.told = None
        peer.told_bytes = hello.told_bytes
        peer.spoke = True
        self._note("connected", peer, f"connected with {peer.name}")
        self.trust(peer.index)
        peer.pump()
        self.changed()

    def lost(self, peer: Peer) -> None:
        self._note("disconnected", peer, f"lost the connection with {peer.name}")
        self.changed()

    def not_there(self, peer: Peer) -> None:
        """Its host is up, and nobody listens where it did: its process has ended. If it is started
        again, or has moved, it is trusted again as soon as it is met."""
        if peer.index in self._core.lives:
            self.suspect(peer.index)

    def parted(self, peer: Peer, bye: Bye) -> None:
        """The peer has hung up and said why."""
        reason = " ".join(bye.reason.split())  # one line, whatever it sends
        self._note("hung_up", peer, f"{peer.name} has hung up: {reason}")
        if bye.final and peer.dead and not self._outnumbered():
            return  # the word of the dead; they hear ours
        if bye.final:
            peer.refused = reason
            if peer.index in self._core.lives:
                self._node.fail(OrdercastError(f"{peer.name} will not have this member: {reason}"))
        elif peer.connection is not None:
            self.suspect(peer.index)
        self.changed()

    def turned_down(self, peer: Peer, bye: Bye) -> None:
        """Someone at the peer's address hung up on us before saying who it is: no more than a
        reason why there is no connection."""
        reason = " ".join(bye.reason.split())
        peer.trouble = f"whoever is at the address of {peer.name} hung up and said: “{reason}”"
        came_and_went = self._node.reception.door.host is not None  # it says so when it is back
        known = came_and_went or peer.trouble == peer.told  # we dial again and again
        self._note("hung_up", peer, peer.trouble, logging.DEBUG if known else logging.INFO)
        peer.told = peer.trouble

    def left_waiting(self, peer: Peer) -> None:
        """Someone at the peer's address hung up on us and did not say why. With keys, what was
        wrong is known from the handshake; without, it is most likely that there was none."""
        if peer.trouble is None and self._node.reception.door.credentials is None:
            peer.trouble = (
                f"whoever is at the address of {peer.name} hung up without a word: perhaps it "
                f"speaks TLS, and {self._node.name} has no keys"
            )

    def changed(self) -> None:
        """Someone has come or gone, or is seen in another light."""
        self._node.stir()
        self._node.wake()
        if self._on_change is not None:
            try:
                self._on_change(self.present)
            except Exception as bug:  # the user's; in here it would pass for a peer's or asyncio's
                self._node.fail(bug)

    # What the node tells.

    def expect(self) -> None:
        """Those whose lives were told to us have yet to be missed, though we never met them."""
        for peer in self:
            peer.spoke = peer.spoke or peer.index in self._core.lives

    def watch_anew(self) -> None:
        """Whom we suspected when we went down means nothing now, but the dead stay dead; and
        whoever died meanwhile has yet to be missed."""
        for peer in self:
            if self._core.standing.gone >> peer.index & 1:
                peer.suspected = peer.dead = True
            elif peer.index in self._core.lives:
                self._inputs.other("trust", peer.index)
        self.expect()

    def into_the_air(self, index: int, packet: bytes, own: bool) -> None:
        """A packet for a peer, where there is weather on the way."""
        air = self.peers[index].air
        assert air is not None
        air.put(packet, broadcast=own)

    def _lands(self, index: int, packet: bytes) -> None:
        self._core.links[index].put(packet)
        self._node.stir()

    # Little things.

    def _look_at_majority(self) -> None:
        """If too few are left for the algorithm, nothing will ever happen here: say so."""
        stack, name = self._core.stack, self._node.name
        algorithm = stack.ordering.name, stack.dissemination.name
        left = stack.size - len(self.dead)
        if catalog.uniform(*algorithm) and 2 * left <= stack.size:
            text = (
                f"only {left} of {stack.size} members {'is' if left == 1 else 'are'} left, and "
                f"{' over '.join(algorithm)} needs {stack.size // 2 + 1}: nothing will be "
                "delivered any more"
            )
            logger.error("%s: %s", name, text, extra=self._facts("majority_lost"))

    def _outnumbered(self) -> bool:
        """Whether those we have not given up are the smaller part of the group. Of two halves the
        one with the first member is the greater: where each gave the other up, one goes on."""
        size, dead = len(self._node.names), len(self.dead)
        return 2 * dead > size or (2 * dead == size and 0 in self.dead)

    def _note(self, event: str, peer: Peer, text: str, level: int = logging.INFO) -> None:
        name = self._node.name
        if self._node.retired:
            level = logging.DEBUG
        logger.log(level, "%s: %s", name, text, extra=self._facts(event, peer.name))

    def _facts(self, event: str, peer: str | None = None) -> dict[str, str]:
        node = self._node
        return about(event, node.name, peer, group=node.reception.door.group)

    def _peer(self, index: int, weather: Weather | None, seed: str) -> Peer:
        heartbeat_s = self._node.settings.heartbeat_s
        detector = Detector(
            threshold=self._node.settings.suspect_phi,
            first_estimate_s=heartbeat_s,
            acceptable_pause_s=4 * heartbeat_s,
        )
        air = None
        if weather is not None:
            fifo = self._core.stack.ordering.needs_fifo
            hand = partial(self._lands, index)
            air = Air(weather, fifo=fifo, seed=f"{seed}/{index}", hand=hand)
        name, link = self._node.names[index], self._core.links[index]
        return Peer(index, name, link, detector=detector, air=air)
