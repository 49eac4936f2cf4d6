"""An asyncio host of one protocol stack: performs its effects on sockets, timers and the user.

Everything that touches the stack runs to its end within one turn of the loop, so the stack sees
one input at a time and the recorder sees events in the order in which they happened here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ordercast.errors import PeerError, UsageError
from ordercast.protocols.effects import Accept, Deliver, HostEffect, StartTimer, Transmit
from ordercast.protocols.messages import Message, message_of
from ordercast.protocols.stack import Stack
from ordercast.runtime.connection import Connection
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX, VERSION, Hello
from ordercast.runtime.peer import Peer, keep_connected
from ordercast.runtime.rest import Counters, LinkCounters
from ordercast.runtime.weather import Weather
from ordercast.trace import Recorder

__all__ = ["HOST", "Node"]

HOST = "127.0.0.1"
CLOSE_TIMEOUT_S = 0.5

logger = logging.getLogger(__name__)


class Node:
    """One member. Of each two members, the one with the higher index dials the other."""

    def __init__(
        self,
        stack: Stack,
        *,
        run: str,
        recorder: Recorder,
        on_deliver: Callable[[Message], object],
        on_presence: Callable[[tuple[int, ...]], object] | None = None,
        weather: Weather | None = None,
        seed: int = 0,
    ) -> None:
        self.name = f"p{stack.me}"
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Ends with an exception when a bug of ours shows up where nobody awaits anything."""
        self._stack = stack
        self._codec = stack.codec()
        self._run = run
        self._recorder = recorder
        self._on_deliver = on_deliver
        self._on_presence = on_presence
        self._seed = f"{seed}/{stack.me}"
        self._peers = {
            index: Peer(
                index,
                weather=weather or Weather(),
                fifo=stack.ordering.needs_fifo,
                seed=f"{self._seed}/{index}",
            )
            for index in range(stack.size)
            if index != stack.me
        }
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._connections: set[Connection] = set()
        self._dialling: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None
        self._closed = False
        self._delivered = 0
        self._held_max = 0
        self._held_last = 0
        self._held_unseen = 0

    @property
    def present(self) -> tuple[int, ...]:
        """The other members that are connected right now."""
        return tuple(index for index, peer in self._peers.items() if peer.link.open)

    async def listen(self, port: int = 0) -> int:
        """Open the door, and start the protocol: from here on packets may come. The port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), HOST, port)
        self._perform(self._stack.start())
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def dial(self, ports: Mapping[int, int]) -> None:
        """Connect to the members whose index is lower, and stay connected. The others dial us."""
        for index in range(self._stack.me):
            jitter = random.Random(f"{self._seed}/{index}/dial")
            dialling = keep_connected(self._dialler(self._peers[index], ports[index]), jitter)
            self._dialling.append(asyncio.create_task(dialling))

    async def send(self, payload: bytes, to: Iterable[int] | None = None) -> Message:
        """Send to everyone, or to some; returns when the sockets are ready for more."""
        if self._closed:
            raise UsageError("this node is closed: it cannot send any more")
        if self.failure.done():
            self.failure.result()
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise UsageError(
                f"a message of {len(payload)} bytes: {PAYLOAD_BYTES_MAX} is the limit, split it"
            )
        message, effects = self._stack.send(payload, to)
        self._perform(effects)
        for peer in self._peers.values():
            await peer.writable()
        return message

    def sending_ends(self) -> None:
        """No further message is coming: nothing in the air need wait for a companion."""
        for peer in self._peers.values():
            peer.air.release_odd()

    def suspect(self, process: int) -> None:
        """Someone has reason to think that this member has crashed."""
        self._perform(self._stack.suspect(process))

    def counters(self) -> Counters:
        held = self._stack.held()
        peers = (self._peers.get(index) for index in self._members)
        return Counters(
            sent=self._stack.sent,
            delivered=self._delivered,
            held=len(held),
            held_max=self._held_max,
            links=tuple(peer.counters() if peer else LinkCounters() for peer in peers),
            timers=len(self._timers),
            waiting=tuple(str(message) for message in held[:20]),
        )

    async def aclose(self, *, flush_s: float = 1.0) -> None:
        """Give what was sent `flush_s` to be acknowledged, then end everything."""
        if self._closed:
            return
        self._closed = True
        self._stop_timers()
        for peer in self._peers.values():
            peer.air.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(flush_s):
                for peer in self._peers.values():
                    await peer.settled()
        await self._hang_up()

    async def _hang_up(self) -> None:
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        if self._server is not None:
            self._server.close()
        for peer in self._peers.values():
            peer.close()
        for end in (Connection.close, Connection.abort):
            for connection in self._connections:
                end(connection)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    for connection in list(self._connections):
                        await connection.gone.wait()
        if self._server is not None:
            await self._server.wait_closed()
        if not self.failure.done():
            self.failure.cancel()

    # What connections ask of their host.

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def hello(self, peer: Peer) -> Hello:
        return Hello(VERSION, self._run, self._stack.me, peer.link.greet())

    def recognise(self, hello: Hello, *, dialled: Peer | None) -> Peer:
        if hello.version != VERSION:
            raise PeerError(f"it speaks version {hello.version}, and we speak {VERSION}")
        if hello.run != self._run:
            raise PeerError(f"it belongs to the run {hello.run!r}, and we to {self._run!r}")
        if dialled is not None:
            if hello.member != dialled.index:
                raise PeerError(f"p{hello.member} answered where p{dialled.index} should be")
            return dialled
        if not self._stack.me < hello.member < self._stack.size:
            raise PeerError(f"it says it is p{hello.member}, who has no business to dial us")
        return self._peers[hello.member]

    def presence_changed(self) -> None:
        if self._on_presence is None:
            return
        try:
            self._on_presence(self.present)
        except Exception as bug:  # the user's; in here it would pass for a peer's or asyncio's
            self.fail(bug)

    def take(self, source: int, packet: bytes) -> None:
        decoded = self._codec.decode(packet)
        message = message_of(decoded)
        if message is not None:
            self._check(message)
            self._recorder.receive(message, control_bytes=len(packet) - len(message.payload))
        effects = self._stack.receive(source, decoded)
        self._perform(effects)
        if message is not None and not any(isinstance(effect, Deliver) for effect in effects):
            # The only moment at which more can be held than before.
            self._look_at_held()

    def _look_at_held(self) -> None:
        """Counting looks at all that is held; so the more there is, the more rarely it is counted,
        and an arrival costs the same however many wait."""
        self._held_unseen += 1
        if self._held_unseen * 4 > self._held_last:
            self._held_last, self._held_unseen = len(self._stack.held()), 0
            self._held_max = max(self._held_max, self._held_last)

    def fail(self, bug: Exception) -> None:
        """Stop dead: whatever the protocol believes now, nobody should hear of it or act on it."""
        if self.failure.done():
            return
        self.failure.set_exception(bug)
        self._stop_timers()
        for task in self._dialling:
            task.cancel()
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.abort()

    @property
    def _members(self) -> range:
        return range(self._stack.size)

    def _dialler(self, peer: Peer, port: int) -> Callable[[], Any]:
        async def dial() -> Connection:
            loop = asyncio.get_running_loop()
            return (await loop.create_connection(lambda: Connection(self, peer), HOST, port))[1]

        return dial

    def _check(self, message: Message) -> None:
        """The wire format knows the types of these numbers; how large the group is, it does not."""
        if message.id.origin not in self._members or message.id.number < 1:
            raise PeerError(f"a group of {self._stack.size} can have no message {message.id}")
        if any(process not in self._members for process in message.destinations or ()):
            raise PeerError(f"{message.id} is addressed to {message.destinations}")

    def _perform(self, effects: Sequence[HostEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Accept):
                # Comes before the Transmit and is on disk before anything leaves: no one can
                # hold a message that its sender's log lacks, whenever this process is killed.
                control_bytes = self._codec.control_bytes(effect.message, effects)
                self._recorder.send(effect.message, control_bytes=control_bytes)
            elif isinstance(effect, Transmit):
                message = message_of(effect.packet)
                own = message is not None and message.id.origin == self._stack.me
                packet = self._codec.encode(effect.packet)
                for index in effect.to:
                    self._peers[index].air.put(packet, broadcast=own)
            elif isinstance(effect, Deliver):
                self._delivered += 1
                self._recorder.deliver(effect.message)
                self._on_deliver(effect.message)
            else:
                self._start_timer(effect)

    def _start_timer(self, timer: StartTimer) -> None:
        if timer.name in self._timers:
            self._timers[timer.name].cancel()
        if self._closed or self.failure.done():
            return
        loop = asyncio.get_running_loop()
        self._timers[timer.name] = loop.call_later(
            timer.delay_us / 1e6, self._timer_ends, timer.name
        )

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _timer_ends(self, name: str) -> None:
        self._timers.pop(name, None)
        try:
            self._perform(self._stack.timer(name))
        except Exception as bug:
            self.fail(bug)
