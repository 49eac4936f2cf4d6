"""An asyncio host of one core: performs on sockets, timers and disk what the core asks for.

Everything that touches the core runs to its end within one turn of the loop. What it leads to
waits for the end of the turn, when it is committed all at once, and only then leaves: to the
journal first, then to the trace, then to the peers and to the application.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial

from ordercast.errors import OrdercastError, PeerError, UsageError
from ordercast.protocols.messages import Held
from ordercast.runtime.bundle import BUNDLE_MESSAGES_MAX, Bundle
from ordercast.runtime.core import Core
from ordercast.runtime.detector import Detector
from ordercast.runtime.dialling import Dialling, Locate
from ordercast.runtime.discovery import Address
from ordercast.runtime.door import Door
from ordercast.runtime.frames import Bye, Data, Hello
from ordercast.runtime.inputs import LoggedCore
from ordercast.runtime.journal import Journal
from ordercast.runtime.logs import about
from ordercast.runtime.outgoing import Outgoing
from ordercast.runtime.peer import Peer
from ordercast.runtime.pulse import Pulse
from ordercast.runtime.reception import Reception
from ordercast.runtime.rest import Counters, LinkCounters
from ordercast.runtime.settings import Settings
from ordercast.runtime.turn import Log, Turn
from ordercast.runtime.weather import Air, Weather

__all__ = ["HOST", "Node"]

HOST = "127.0.0.1"
CROWD = 16
"""With so many messages in it, a bundle is not cut short by what arrives."""

_UNHEEDED = memoryview(bytearray(BUNDLE_MESSAGES_MAX))

logger = logging.getLogger(__name__)


class Node:
    """One member. Of each two members, the one with the higher index dials the other."""

    def __init__(
        self,
        core: Core,
        *,
        door: Door,
        names: tuple[str, ...],
        charter: str,
        settings: Settings | None = None,
        journal: Journal | None = None,
        log: Log | None = None,
        weather: Weather | None = None,
        on_presence: Callable[[tuple[int, ...]], object] | None = None,
        seed: int = 0,
    ) -> None:
        self.core = core
        self.me = core.stack.me
        self.name = names[self.me]
        self.names = names
        self.settings = settings or Settings()
        self.patience_s = self.settings.patience_s(journal=journal is not None)
        """After how long an absent member is given up; None: never."""
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with an exception when this member cannot go on: a bug of ours shows up where
        nobody awaits anything, the journal cannot be written, or the others gave it up."""
        self.visible = 0
        """The position up to which deliveries may be handed to the application."""
        self._inputs = LoggedCore(core, journal.append if journal is not None else None)
        self._journal = journal
        self._on_presence = on_presence
        self._seed = f"{seed}/{self.me}"
        self._peers = {index: self._peer(index, weather) for index in core.links}
        self.outgoing = Outgoing(self)
        core.attach(
            clock_us=lambda: time.time_ns() // 1000,
            recording=log is not None,
            excerpt_chars=self.settings.excerpt_chars,
            carry=self._into_the_air if weather is not None else None,
        )
        self.reception = Reception(self, door, self._peers, charter=charter)
        credentials = door.credentials
        self._dialling = Dialling(
            self, context=credentials.client if credentials else None, seed=self._seed
        )
        self.pulse = Pulse(self, self._peers)
        self._turn = Turn(
            self, self._inputs, self._peers, journal=journal, log=log, on_release=self._released
        )
        self._closed = False
        self._inbox: list[tuple[Peer, bytes]] = []
        self._ended: list[str] = []
        """Timers of the protocol that were up meanwhile."""
        self._news = asyncio.Event()
        self._held_max = 0
        self.bundles_sent = 0
        self.bytes_sent = 0
        self.bundles_taken = 0
        self._held_last = 0
        self._held_unseen = 0

    # What the program that runs this member calls.

    @property
    def present(self) -> tuple[int, ...]:
        """The other members that are connected right now."""
        return tuple(index for index, peer in self._peers.items() if peer.link.open)

    @property
    def suspected(self) -> tuple[int, ...]:
        return tuple(index for index, peer in self._peers.items() if peer.suspected)

    @property
    def dead(self) -> tuple[int, ...]:
        return tuple(index for index, peer in self._peers.items() if peer.dead)

    @property
    def refusals(self) -> dict[str, str]:
        """Members that have hung up on us for good, and what they said."""
        return {peer.name: peer.refused for peer in self._peers.values() if peer.refused}

    def start(self, *, recovered: bool = False) -> None:
        """Start the protocol, or go on where the journal ends, and let the others in."""
        self.reception.door.node = self
        self._inputs.other("restart" if recovered else "start")
        if recovered:
            self._watch_anew()
        self.visible = self.core.delivered
        self.outgoing.busy = False
        self.pulse.beat()
        self.stir()

    def _watch_anew(self) -> None:
        """Whom we suspected when we went down means nothing now, but the dead stay dead; and
        whoever died meanwhile has yet to be missed."""
        for peer in self._peers.values():
            if self.core.standing.gone >> peer.index & 1:
                peer.suspected = peer.dead = True
            elif peer.index in self.core.lives:
                self._inputs.other("trust", peer.index)
                peer.spoke = True

    def dial(self, addresses: Mapping[int, Address], locate: Locate | None = None) -> None:
        """Connect with everyone, and stay connected. `locate` finds those who have moved."""
        self._dialling.start(self._peers, addresses, locate)

    @property
    def over(self) -> bool:
        """Has this member left, or failed?"""
        return self._closed or self.failure.done()

    def check_healthy(self) -> None:
        """Raise what made this member fail, if it has."""
        if self.failure.done() and not self.failure.cancelled():
            self.failure.result()

    def check_alive(self) -> None:
        """Raise if this member cannot do anything any more."""
        self.check_healthy()
        if self._closed:
            raise UsageError("this member has left the group: it can neither send nor receive")

    def submit(
        self, bundle: bytes, first: int, payloads: list[bytes], to: tuple[int, ...] | None
    ) -> int:
        number = self._inputs.submit(bundle, first, payloads, to)
        self.bundles_sent += 1
        self.bytes_sent += len(bundle)
        self.stir()
        return number

    def next_bundle(self) -> Bundle | None:
        """What the application may take now; it stays here until it `took` all of it. Nothing once
        a member that remembers has left: that is for its next life."""
        if self._closed and self.remembers:
            return None
        queue = self.core.queue
        return queue[0] if queue and queue[0].end <= self.visible else None

    def took(self, bundle: Bundle) -> None:
        """The application has taken the last message of the bundle."""
        taken = self.core.queue.popleft()
        assert taken is bundle
        self.core.took(bundle)
        self.bundles_taken += 1
        if bundle.origin == self.me:
            self._news.set()
        self._turn.acknowledge_soon()

    async def wait(self) -> None:
        """Until something has happened: a delivery, a settled bundle, room, presence, the end."""
        self._news.clear()
        await self._news.wait()

    @property
    def remembers(self) -> bool:
        return self._journal is not None

    def mark(self, bundle: Bundle) -> None:
        """To be called before the application gets all of a bundle, so that it is never handed
        out again."""
        if self._journal is not None:
            self._journal.mark(bundle.end)

    def ticks(self, bundle: Bundle) -> memoryview:
        """The same for the messages of a bundle one by one: store a 1 at the place of each."""
        if self._journal is None:
            return _UNHEEDED
        return self._journal.ticks(bundle.position - 1, len(bundle.payloads))

    def sending_ends(self) -> None:
        """No further message is coming: nothing in the air need wait for a companion."""
        self.outgoing.flush()
        for peer in self._peers.values():
            if peer.air is not None:
                peer.air.release_odd()

    def suspect(self, process: int) -> None:
        """Someone has reason to think that this member has crashed."""
        peer = self._peers[process]
        if not peer.suspected:
            peer.suspected = True
            self._note("suspected", peer, f"suspects that {peer.name} is down")
            self._inputs.other("suspect", process)
            self._changed()

    def trust(self, process: int) -> None:
        """A suspicion has proved wrong, or the member is back."""
        peer = self._peers[process]
        if peer.suspected and not peer.dead:
            peer.suspected = False
            self._note("trusted", peer, f"{peer.name} is up after all")
            self._inputs.other("trust", process)
            self._changed()

    def bury(self, process: int, reason: str) -> None:
        """Give a member up for good: nothing is kept for it, and it is not let in again."""
        peer = self._peers[process]
        if not peer.dead:
            self.suspect(process)
            peer.dead = True
            self._note("dead", peer, f"declares {peer.name} dead: {reason}", logging.WARNING)
            if peer.connection is not None:
                peer.connection.part(f"{self.name} declared {peer.name} dead: {reason}", final=True)
            self._inputs.other("bury", process)
            self._changed()

    def held(self) -> list[Held]:
        return self.core.stack.held()

    def counters(self) -> Counters:
        held = self.held()
        peers = (self._peers.get(index) for index in range(len(self.names)))
        return Counters(
            sent=self.core.sent,
            delivered=self.core.delivered,
            held=len(held),
            held_max=max(self._held_max, len(held)),
            links=tuple(peer.counters() if peer else LinkCounters() for peer in peers),
            timers=self._turn.timers + len(self.outgoing),
            suspected=self.suspected,
            waiting=tuple(str(message) for message in held[:20]),
        )

    async def aclose(self, *, flush_s: float = 1.0) -> None:
        """Give what was sent `flush_s` to be acknowledged, then end everything."""
        if self._closed:
            return
        if not self.failure.done():
            self.outgoing.flush()
            self._turn.end_timers()
            self._turn.commit()
        self._closed = True
        self._stop()
        for peer in self._peers.values():
            if peer.air is not None:
                peer.air.flush()
        if not self.failure.done():
            self._turn.commit()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(flush_s):
                    for peer in self._peers.values():
                        await peer.settled()
            if self._journal is not None:
                self._inputs.other("leave")
            self._turn.commit()
        self._dialling.cancel()
        await self._dialling.ended()
        await self.reception.close()
        if not self.failure.done():
            self.failure.cancel()
        self.outgoing.wake_all()
        self._news.set()

    # What connections tell.

    def met(self, peer: Peer, hello: Hello) -> None:
        if peer.index not in self.core.lives:
            self._inputs.other("meet", peer.index, hello.life)
        peer.refused = None
        peer.spoke = True
        self._note("connected", peer, f"connected with {peer.name}")
        self.trust(peer.index)
        peer.pump()
        self._changed()

    def parted(self, peer: Peer, bye: Bye) -> None:
        """The peer has hung up and said why."""
        reason = " ".join(bye.reason.split())  # one line, whatever it sends
        self._note("hung_up", peer, f"{peer.name} has hung up: {reason}")
        if bye.final:
            peer.refused = reason
            if peer.index in self.core.lives:
                self.fail(OrdercastError(f"{peer.name} will not have this member: {reason}"))
        elif peer.connection is not None:
            self.suspect(peer.index)
        self._changed()

    def presence_changed(self) -> None:
        self._changed()

    def take(self, peer: Peer, data: Data) -> None:
        """Packets have come. They end the bundle that is being filled, since they may deliver
        something: if there is much in it already, they wait until it leaves, so that whoever sends
        a lot sends large bundles."""
        self._inbox += [(peer, packet) for packet in peer.link.receive(data)]
        peer.news()
        if len(self.outgoing) < CROWD:
            self.take_in()

    def timer_ended(self, name: str) -> None:
        """One of the protocol's. It may deliver something, so the same goes for it."""
        self._ended.append(name)
        if len(self.outgoing) < CROWD:
            self.take_in()

    def take_in(self) -> None:
        """See to what has come."""
        self.outgoing.flush()
        ended, self._ended = self._ended, []
        for name in ended:
            self._inputs.other("timer", name)
            self.stir()
        inbox, self._inbox = self._inbox, []
        take = self._inputs.take
        for peer, packet in inbox:
            before = self.core.delivered
            try:
                take(peer.index, packet)
            except PeerError as error:
                if peer.connection is not None:
                    peer.connection.refuse(error)
            if self.core.delivered == before:
                self._look_at_held()

    def stir(self) -> None:
        """Something has happened: see to it at the end of this turn."""
        self._turn.stir()

    def fail(self, bug: BaseException) -> None:
        """Stop dead: whatever the protocol believes now, nobody should hear of it or act on it."""
        if self.failure.done():
            return
        self.failure.set_exception(bug)
        self.failure.exception()  # it is looked at by whoever uses this member next
        self._stop()
        self._dialling.cancel()
        self.reception.abort()
        self.outgoing.wake_all()
        self._news.set()

    def _released(self, delivered: int, bundles: int) -> None:
        """So much may be seen by the application now."""
        self.visible = delivered
        self.outgoing.settle(bundles)
        self._news.set()

    def _stop(self) -> None:
        """No timer of any kind ends any more."""
        self._turn.stop()
        self.pulse.stop()
        self.outgoing.stop()

    def _changed(self) -> None:
        self.stir()
        self._news.set()
        if self._on_presence is not None:
            try:
                self._on_presence(self.present)
            except Exception as bug:  # the user's; in here it would pass for a peer's or asyncio's
                self.fail(bug)

    def _look_at_held(self) -> None:
        """Counting looks at all that is held; so the more there is, the more rarely it is counted,
        and an arrival costs the same however many wait."""
        self._held_unseen += 1
        more_than_ever = len(self.core.arrivals) > self._held_max
        if more_than_ever and self._held_unseen * 4 > self._held_last:
            self._held_last, self._held_unseen = len(self.held()), 0
            self._held_max = max(self._held_max, self._held_last)

    # Little things.

    def _note(self, event: str, peer: Peer, text: str, level: int = logging.INFO) -> None:
        extra = about(event, self.name, peer.name)
        logger.log(level, "%s: %s", self.name, text, extra=extra)

    def _peer(self, index: int, weather: Weather | None) -> Peer:
        detector = Detector(
            threshold=self.settings.suspect_phi,
            first_estimate_s=self.settings.heartbeat_s,
            acceptable_pause_s=4 * self.settings.heartbeat_s,
        )
        air = self._air(index, weather)
        return Peer(index, self.names[index], self.core.links[index], detector=detector, air=air)

    def _air(self, index: int, weather: Weather | None) -> Air | None:
        if weather is None:
            return None
        return Air(
            weather,
            fifo=self.core.stack.ordering.needs_fifo,
            seed=f"{self._seed}/{index}",
            hand=partial(self._lands, index),
        )

    def _into_the_air(self, index: int, packet: bytes, own: bool) -> None:
        air = self._peers[index].air
        assert air is not None
        air.put(packet, broadcast=own)

    def _lands(self, index: int, packet: bytes) -> None:
        self.core.links[index].put(packet)
        self.stir()
