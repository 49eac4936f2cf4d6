"""An asyncio host of one core: performs on sockets, timers and disk what the core asks for.

Everything that touches the core runs to its end within one turn of the loop. What it leads to
waits for the end of the turn, when it is committed all at once, and only then leaves: to the
journal first, then to the trace, then to the peers and to the application.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from ordercast.errors import OrdercastError, PeerError, UsageError
from ordercast.protocols.messages import Held
from ordercast.runtime.bundle import Bundle
from ordercast.runtime.connection import Connection, FinalPeerError
from ordercast.runtime.core import Core
from ordercast.runtime.detector import Attention, Detector
from ordercast.runtime.discovery import Address
from ordercast.runtime.door import Door
from ordercast.runtime.frames import VERSION, Ask, Bye, Data, Hello, Members
from ordercast.runtime.inputs import LoggedCore
from ordercast.runtime.journal import KEEP_BYTES, SEGMENT_BYTES, Journal
from ordercast.runtime.outgoing import Outgoing
from ordercast.runtime.peer import Peer, keep_connected
from ordercast.runtime.rest import Counters, LinkCounters
from ordercast.runtime.weather import Air, Weather
from ordercast.trace.spans import Span

__all__ = ["HOST", "Node", "Settings"]

HOST = "127.0.0.1"
CLOSE_TIMEOUT_S = 0.5
ACK_DELAY_S = 0.001

logger = logging.getLogger(__name__)


class Settings(Struct, frozen=True, kw_only=True):
    """What may be tuned. The defaults suit a local network."""

    window_bytes: int = 4 * 2**20
    """A member's own messages that any other member's application has yet to take."""
    linger_s: float = 0.001
    """How long a message may wait for company when others have just left."""
    heartbeat_s: float = 0.25
    suspect_phi: float = 8.0
    """How sure one must be that a silent member is down (phi of an accrual detector)."""
    dead_after_s: float | None = None
    """A member that is away or takes nothing for so long is given up for good; None: never."""
    segment_bytes: int = SEGMENT_BYTES
    """How large a file of the journal becomes before the next one begins with a snapshot."""
    keep_bytes: int = KEEP_BYTES
    """Older files of the journal are kept up to this size, for those who replay."""


class Log(Protocol):
    """Where rows for the trace go."""

    def write(self, spans: Iterable[Span]) -> None: ...


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
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with an exception when this member cannot go on: a bug of ours shows up where
        nobody awaits anything, the journal cannot be written, or the others gave it up."""
        self.visible = 0
        """The position up to which deliveries may be handed to the application."""
        self._inputs = LoggedCore(core, journal.append if journal is not None else None)
        self._door = door
        self._charter = charter
        self._journal = journal
        self._log = log
        self._on_presence = on_presence
        self._seed = f"{seed}/{self.me}"
        self._peers = {
            index: Peer(
                index,
                names[index],
                link,
                detector=Detector(
                    threshold=self.settings.suspect_phi,
                    first_estimate_s=self.settings.heartbeat_s,
                    acceptable_pause_s=4 * self.settings.heartbeat_s,
                ),
                air=self._air(index, weather),
            )
            for index, link in core.links.items()
        }
        self.outgoing = Outgoing(self)
        core.attach(
            clock_us=lambda: time.time_ns() // 1000,
            recording=log is not None,
            carry=self._into_the_air if weather is not None else None,
        )
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._connections: set[Connection] = set()
        self._dialling: list[asyncio.Task[None]] = []
        self._beating: asyncio.TimerHandle | None = None
        self._ack_timer: asyncio.TimerHandle | None = None
        self._stirred = False
        self._closed = False
        now = asyncio.get_running_loop().time()
        self._attention = Attention(2 * self.settings.heartbeat_s, now)
        self._news = asyncio.Event()
        self._held_max = 0
        self.bundles_sent = 0
        self.bundles_taken = 0
        self.lag_s = 0.0
        """How late the last heartbeat was: how long the loop had been busy with other things."""
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
        self._door.node = self
        self._inputs.other("restart" if recovered else "start")
        self.visible = self.core.delivered
        self.outgoing.busy = False
        self._beat()
        self.stir()

    def dial(self, addresses: Mapping[int, Address]) -> None:
        """Connect to the members whose index is lower, and stay connected. The others dial us."""
        for index, peer in self._peers.items():
            if index < self.me:
                dialling = keep_connected(
                    self._dialler(peer, addresses[index]),
                    jitter=random.Random(f"{self._seed}/{index}/dial"),
                    useless=lambda peer=peer: peer.dead or peer.refused is not None,  # type: ignore[misc]
                )
                self._dialling.append(asyncio.create_task(dialling))

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
        self.stir()
        return number

    def next_bundle(self) -> Bundle | None:
        """What the application may take now; it stays here until it `took` all of it."""
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
        self._acknowledge_soon()

    async def wait(self) -> None:
        """Until something has happened: a delivery, a settled bundle, room, presence, the end."""
        self._news.clear()
        await self._news.wait()

    @property
    def mark(self) -> Callable[[int], None] | None:
        """To be called with each position before the application gets it, so that it is never
        handed out again; None if nobody would remember."""
        return self._journal.mark if self._journal is not None else None

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
            logger.info("%s: suspects that %s is down", self.name, peer.name)
            self._inputs.other("suspect", process)
            self._changed()

    def trust(self, process: int) -> None:
        """A suspicion has proved wrong, or the member is back."""
        peer = self._peers[process]
        if peer.suspected and not peer.dead:
            peer.suspected = False
            logger.info("%s: %s is up after all", self.name, peer.name)
            self._inputs.other("trust", process)
            self._changed()

    def bury(self, process: int, reason: str) -> None:
        """Give a member up for good: nothing is kept for it, and it is not let in again."""
        peer = self._peers[process]
        if not peer.dead:
            self.suspect(process)
            peer.dead = True
            logger.warning("%s: declares %s dead: %s", self.name, peer.name, reason)
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
            timers=len(self._timers) + (self._ack_timer is not None) + len(self.outgoing),
            waiting=tuple(str(message) for message in held[:20]),
        )

    async def aclose(self, *, flush_s: float = 1.0) -> None:
        """Give what was sent `flush_s` to be acknowledged, then end everything."""
        if self._closed:
            return
        if not self.failure.done():
            self.outgoing.flush()
            self._commit()
        self._closed = True
        self._stop_timers()
        for peer in self._peers.values():
            if peer.air is not None:
                peer.air.flush()
        if not self.failure.done():
            self._commit()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(flush_s):
                    for peer in self._peers.values():
                        await peer.settled()
            if self._journal is not None:
                self._inputs.other("leave")
            self._commit()
        await self._hang_up()
        self.outgoing.wake_all()
        self._news.set()

    async def _hang_up(self) -> None:
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        self._door.close()
        for peer in self._peers.values():
            if peer.connection is not None:
                peer.connection.part(f"{self.name} leaves")
        for end in (Connection.close, Connection.abort):
            for connection in self._connections:
                end(connection)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    for connection in list(self._connections):
                        await connection.gone.wait()
        await self._door.wait_closed()
        if not self.failure.done():
            self.failure.cancel()

    # What connections ask of their host.

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)

    def closed_connection(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def hello(self, peer: Peer) -> Hello:
        received, sent = peer.link.greet()
        return Hello(
            VERSION, self._door.group, self._charter, self.me, self.core.life, received, sent
        )

    def recognise(
        self, hello: Hello, transport: asyncio.Transport, *, dialled: Peer | None
    ) -> Peer:
        if hello.version != VERSION:
            raise FinalPeerError(f"it speaks version {hello.version}, and we speak {VERSION}")
        if hello.group != self._door.group:
            raise FinalPeerError(
                f"it belongs to the group {hello.group!r}, and we to {self._door.group!r}"
            )
        if hello.charter != self._charter:
            raise FinalPeerError(f"it runs {hello.charter!r}, and we run {self._charter!r}")
        if dialled is not None:
            if hello.member != dialled.index:
                raise PeerError(
                    f"{self._name_of(hello.member)} answered where {dialled.name} should be"
                )
            peer = dialled
        elif not self.me < hello.member < len(self.names):
            raise PeerError(
                f"it says it is {self._name_of(hello.member)}, who has no business to dial us"
            )
        else:
            peer = self._peers[hello.member]
        self._door.check_name(peer.name, transport)
        if peer.dead:
            raise FinalPeerError(f"{self.name} declared {peer.name} dead")
        if self.core.lives.get(peer.index, hello.life) != hello.life:
            raise FinalPeerError(
                f"{peer.name} has come back without what it knew: start it with its journal, "
                "or start the whole group afresh"
            )
        return peer

    def met(self, peer: Peer, hello: Hello) -> None:
        if peer.index not in self.core.lives:
            self._inputs.other("meet", peer.index, hello.life)
        peer.refused = None
        peer.spoke = True
        self.trust(peer.index)
        peer.pump()
        self._changed()

    def parted(self, peer: Peer, bye: Bye) -> None:
        """The peer has hung up and said why."""
        logger.info("%s: %s has hung up: %s", self.name, peer.name, bye.reason)
        if bye.final:
            peer.refused = bye.reason
            if peer.link.received:
                self.fail(OrdercastError(f"{peer.name} will not have this member: {bye.reason}"))
        elif peer.connection is not None:
            self.suspect(peer.index)
        self._changed()

    def asked(self, ask: Ask, transport: asyncio.Transport) -> Members:
        return self._door.asked(ask, transport)

    def presence_changed(self) -> None:
        self._changed()

    def take(self, peer: Peer, data: Data) -> None:
        self.outgoing.flush()
        link, take = peer.link, self._inputs.take
        for packet in link.receive(data):
            before = self.core.delivered
            take(peer.index, packet)
            if self.core.delivered == before:
                self._look_at_held()
        peer.news()

    def stir(self) -> None:
        """Something has happened: see to it at the end of this turn."""
        if not self._stirred and not self.failure.done():
            self._stirred = True
            asyncio.get_running_loop().call_soon(self._commit)

    def fail(self, bug: BaseException) -> None:
        """Stop dead: whatever the protocol believes now, nobody should hear of it or act on it."""
        if self.failure.done():
            return
        self.failure.set_exception(bug)
        self.failure.exception()  # it is looked at by whoever uses this member next
        self._stop_timers()
        for task in self._dialling:
            task.cancel()
        self._door.close()
        for connection in self._connections:
            connection.abort()
        self.outgoing.wake_all()
        self._news.set()

    # The end of a turn.

    def _commit(self) -> None:
        self._stirred = False
        if self.failure.done():
            return
        try:
            core = self.core
            for peer in self._peers.values():
                if core.owes_report(peer.index) and peer.link.sent > peer.link.cleared:
                    self._report(peer)
            self._arm()
            marks = [(p.link, p.link.sent, p.link.received) for p in self._peers.values()]
            spans, core.spans = core.spans, []
            release = partial(self._release, marks, spans, core.delivered)
            if self._journal is None:
                release()
            else:
                self._journal.commit(release)
                if self._journal.full:
                    self._journal.cut(core.snapshot())
        except Exception as bug:
            self.fail(bug)

    def _release(self, marks: list[Any], spans: list[Span], delivered: int) -> None:
        """What led to this is safe: now it may be known."""
        if self.failure.done():
            return
        if spans and self._log is not None:
            self._log.write(spans)
        for link, sent, received in marks:
            link.commit(sent, received)
        waiting = False
        for peer in self._peers.values():
            peer.pump()
            if peer.link.owes_ack_now:
                self._acknowledge(peer)
            waiting = waiting or peer.link.owes_ack or self.core.owes_report(peer.index)
        if waiting:
            self._acknowledge_soon()
        self.visible = delivered
        self.outgoing.settle()
        self._news.set()

    def _report(self, peer: Peer) -> None:
        self._inputs.other("report", peer.index, self.core.taken[peer.index])
        peer.reported = self.core.taken[peer.index]

    def _acknowledge_soon(self) -> None:
        if self._ack_timer is None and not self._closed and not self.failure.done():
            loop = asyncio.get_running_loop()
            self._ack_timer = loop.call_later(ACK_DELAY_S, self._acknowledge_all)

    def _acknowledge_all(self) -> None:
        self._ack_timer = None
        if self.failure.done():
            return
        for peer in self._peers.values():
            self._acknowledge(peer)

    def _acknowledge(self, peer: Peer) -> None:
        taken = self.core.taken[peer.index]
        due = taken - peer.reported >= self.settings.window_bytes // 4
        if not peer.dead and (due or self.core.owes_report(peer.index)):
            self._report(peer)
            self.stir()
        elif peer.link.owes_ack:
            peer.acknowledge()

    # Timers.

    def _arm(self) -> None:
        started, self.core.started = self.core.started, []
        loop = asyncio.get_running_loop()
        for name in started:
            delay_us = self.core.timers.get(name)
            if name in self._timers:
                self._timers.pop(name).cancel()
            if delay_us is not None and not self._closed:
                self._timers[name] = loop.call_later(delay_us / 1e6, self._timer_ends, name)

    def _timer_ends(self, name: str) -> None:
        self._timers.pop(name, None)
        try:
            self.outgoing.flush()
            self._inputs.other("timer", name)
            self.stir()
        except Exception as bug:
            self.fail(bug)

    def _stop_timers(self) -> None:
        for timer in (*self._timers.values(), self._beating, self._ack_timer):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
        self._ack_timer = self._beating = None
        self.outgoing.stop()

    def _beat(self) -> None:
        """Show that we are alive, and see who else is."""
        loop = asyncio.get_running_loop()
        now, every = loop.time(), self.settings.heartbeat_s
        if self._beating is not None:
            self.lag_s = max(now - self._beating.when(), 0.0)
        missed_since = self._attention.missed_since(now)
        for peer in self._peers.values():
            if missed_since is not None:  # it is we who were away
                peer.detector.pause(missed_since)
                peer.detector.resume(now)
            if peer.spoke:
                peer.spoke = False
                peer.detector.heard(now)
            if peer.silent:
                peer.acknowledge()
            peer.silent = True
            if peer.index in self.core.lives and not peer.dead:
                self._look_at(peer, now)
        self._beating = loop.call_later(every, self._beat)

    def _look_at(self, peer: Peer, now: float) -> None:
        if peer.detector.suspects(now) or (peer.suspected and peer.connection is None):
            self.suspect(peer.index)
        else:
            self.trust(peer.index)
        stuck = peer.suspected or self.outgoing.stuck_on(peer.index)
        if not stuck:
            peer.stuck_since = None
        elif peer.stuck_since is None:
            peer.stuck_since = now
        limit = self.settings.dead_after_s
        if limit is not None and peer.stuck_since is not None and now - peer.stuck_since > limit:
            why = "not heard of" if peer.suspected else "took nothing"
            self.bury(peer.index, f"{why} for {limit:g} s")

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
        if self._held_unseen * 4 > self._held_last:
            self._held_last, self._held_unseen = len(self.held()), 0
            self._held_max = max(self._held_max, self._held_last)

    # Little things.

    def _name_of(self, index: int) -> str:
        return self.names[index] if index < len(self.names) else f"member {index}"

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

    def _dialler(self, peer: Peer, address: Address) -> Callable[[], Any]:
        async def dial() -> Connection:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(
                lambda: Connection(self, peer),
                address.host,
                address.port,
                ssl=self._door.credentials.client if self._door.credentials else None,
            )
            return connection

        return dial
