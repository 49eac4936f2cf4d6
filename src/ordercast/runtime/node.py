"""An asyncio host of one core: performs on sockets, timers and disk what the core asks for.

Everything that touches the core runs to its end within one turn of the loop. What it leads to
waits for the end of the turn, when it is committed all at once, and only then leaves: to the
journal first, then to the trace, then to the peers and to the application.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from functools import partial

from ordercast.errors import OrdercastError, UsageError
from ordercast.protocols.messages import Held
from ordercast.runtime.company import Company
from ordercast.runtime.core import Core
from ordercast.runtime.dialling import Dialling, Locate
from ordercast.runtime.discovery import Address
from ordercast.runtime.door import Door
from ordercast.runtime.handout import Handout
from ordercast.runtime.inputs import LoggedCore
from ordercast.runtime.intake import Intake
from ordercast.runtime.journal import Journal
from ordercast.runtime.outgoing import Outgoing
from ordercast.runtime.pulse import Pulse
from ordercast.runtime.reception import Reception
from ordercast.runtime.rest import Counters, LinkCounters
from ordercast.runtime.settings import Settings
from ordercast.runtime.surroundings import surroundings
from ordercast.runtime.turn import Log, Turn
from ordercast.runtime.weather import Weather

__all__ = ["HOST", "Node"]

HOST = "127.0.0.1"
LAST_COMMIT_S = 10.0
"""So long a disk may take for the last word of a member that leaves."""


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
        self._loop = asyncio.get_running_loop()
        self.failure: asyncio.Future[None] = self._loop.create_future()
        """Ends with an exception when this member cannot go on: a bug of ours shows up where
        nobody awaits anything, the journal cannot be written, or the others gave it up."""
        self.journal = journal
        self.handout = Handout(self)
        append = journal.append if journal is not None else None
        self._inputs = inputs = LoggedCore(core, append, self.fail)
        self.company = Company(
            self, inputs, weather=weather, seed=f"{seed}/{self.me}", on_change=on_presence
        )
        peers = self.company.peers
        self.outgoing = Outgoing(self)
        self.intake = Intake(self, inputs)
        core.attach(
            clock_us=surroundings().clock_us,
            recording=log is not None,
            excerpt_chars=self.settings.excerpt_chars,
            carry=self.company.into_the_air if weather is not None else None,
        )
        self.reception = Reception(self, door, peers, charter=charter)
        context = door.credentials.client if door.credentials else None
        self._dialling = Dialling(self, context=context, seed=f"{seed}/{self.me}")
        self.pulse = Pulse(self, peers)
        self.turn = Turn(self, inputs, peers, journal=journal, log=log, on_release=self._released)
        self.retired = False
        """Whether another has taken its place, and it is of interest only to those who lag."""
        self.closed = False
        """Whether this member has left, or is leaving."""
        self._gone = asyncio.Event()
        """When it has, and nothing of it goes on."""
        self._waiting: dict[asyncio.Future[None], None] = {}
        self.bundles_sent = 0
        self.bytes_sent = 0

    # What the program that runs this member calls.

    def start(self, *, recovered: bool = False) -> None:
        """Start the protocol, or go on where the journal ends, and let the others in."""
        self.reception.door.node = self
        self._inputs.other("restart" if recovered else "start", surroundings().token())
        if recovered:
            self.company.watch_anew()
        else:
            self.company.expect()
        self.handout.visible = self.core.delivered
        self.outgoing.busy = False
        self.pulse.beat()
        self.stir()

    def dial(self, addresses: Mapping[int, Address], locate: Locate | None = None) -> None:
        """Connect with everyone, and stay connected. `locate` finds those who have moved."""
        self._dialling.start(self.company.peers, addresses, locate)

    @property
    def over(self) -> bool:
        """Has this member left, or failed?"""
        return self.closed or self.failure.done()

    def check_healthy(self) -> None:
        """Raise what made this member fail, if it has."""
        if self.failure.done() and not self.failure.cancelled():
            self.failure.result()

    def check_alive(self) -> None:
        """Raise if this member cannot do anything any more."""
        self.check_healthy()
        if self.closed:
            raise UsageError("this member has left the group: it can neither send nor receive")

    def submit(
        self, bundle: bytes, first: int, payloads: list[bytes], to: tuple[int, ...] | None
    ) -> int:
        number = self._inputs.submit(bundle, first, payloads, to)
        self.bundles_sent += 1
        self.bytes_sent += len(bundle)
        self.stir()
        return number

    def wake(self) -> None:
        """Something has happened that those who `wait` may wait for."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for one in waiting:
                if not one.done():  # it may have been cancelled
                    one.set_result(None)

    async def wait(self) -> None:
        """Until something has happened: a delivery, a settled bundle, room, presence, the end."""
        one = self._loop.create_future()
        self._waiting[one] = None
        try:
            await one
        finally:
            self._waiting.pop(one, None)  # it is still there if the one who waits was cancelled

    @property
    def remembers(self) -> bool:
        return self.journal is not None

    def sending_ends(self) -> None:
        """No further message is coming: nothing in the air need wait for a companion."""
        self.outgoing.flush()
        for peer in self.company:
            if peer.air is not None:
                peer.air.release_odd()

    def held(self) -> list[Held]:
        return self.core.stack.held()

    def counters(self) -> Counters:
        held = self.held()
        peers = (self.company.peers.get(index) for index in range(len(self.names)))
        return Counters(
            sent=self.core.sent,
            delivered=self.core.delivered,
            held=len(held),
            held_max=max(self.intake.held_max, len(held)),
            links=tuple(peer.counters() if peer else LinkCounters() for peer in peers),
            timers=self.turn.timers + len(self.outgoing),
            suspected=self.company.suspected,
            waiting=tuple(str(message) for message in held[:20]),
        )

    async def aclose(self, *, flush_s: float = 1.0) -> None:
        """Give what was sent `flush_s` to be acknowledged, then end everything. Whoever asks for
        it while it is being done waits for that."""
        if self.closed:
            await self._gone.wait()
            return
        if not self.failure.done():
            self.outgoing.flush()
            self.turn.end_timers()
            self.turn.commit()
        self.closed = self.outgoing.busy = True
        self._stop()
        try:
            await self._leave(flush_s)
        finally:  # whoever is cancelled meanwhile leaves nothing behind that would go on
            self._dialling.cancel()
            self.reception.abort()
            if not self.failure.done():
                self.failure.cancel()
            self.outgoing.wake_all()
            self.wake()
            self._gone.set()

    async def _leave(self, flush_s: float) -> None:
        for peer in self.company:
            if peer.air is not None:
                peer.air.flush()
        if not self.failure.done():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(flush_s):
                    await self._commit()
                    for peer in self.company:
                        await peer.settled()
        self._dialling.cancel()
        await self._dialling.ended()
        if not self.failure.done():
            if self.journal is not None:
                self._inputs.other("leave")
            self.turn.commit()
        await self.reception.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_COMMIT_S):
                await self._commit()

    async def _commit(self) -> None:
        """And wait until it is safe and has left: where a thread syncs, that is later."""
        self.turn.commit()
        if self.journal is None or self.failure.done():
            return
        safe = self._loop.create_future()
        # What it raises fails us anyway: its thread has said so, or the turn that goes on meets it.
        with contextlib.suppress(OrdercastError):
            self.journal.commit(partial(safe.set_result, None))
        if not safe.done():
            await asyncio.wait({safe, self.failure}, return_when=asyncio.FIRST_COMPLETED)

    # What its parts call.

    def stir(self) -> None:
        """Something has happened: see to it at the end of this turn."""
        self.turn.stir()

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
        self.wake()

    def _released(self, delivered: int, bundles: int) -> None:
        """So much may be seen by the application now."""
        news = delivered > self.handout.visible or self.outgoing.busy
        self.handout.visible = delivered
        self.outgoing.settle(bundles)
        if news:
            self.wake()

    def _stop(self) -> None:
        """No timer of any kind ends any more."""
        self.turn.stop()
        self.pulse.stop()
        self.outgoing.stop()
