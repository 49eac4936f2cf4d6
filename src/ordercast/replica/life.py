"""From generation to generation: what a replica does.

    on do(command):           send it in this generation, again in the next if it came too late
    on delivery of a command: carry it out
    on delivery of a change:  this generation ends here, for everyone; save the state, and begin
                              the next one if we have a seat there; if not, knock, unless we were
                              sent away
    on a newer generation elsewhere:
                              we have missed how ours ended: if we have a seat there, fetch the
                              state, and only then leave ours; if not, knock
    before a first knock:     load the state, as a trial: a seat counts for majorities, whether
                              anybody can take it or not
    on a knock:               say who the members are; propose to add whoever wants a seat
    if everyone waits for a member that is away:
                              propose a generation without it; it comes back as a newcomer does

Commands are the worker's business, the others the lookout's, knocks the host's. Here is what comes
of it: which generation we are in, and how we come into the next one.

Whoever has a seat takes it when it has the state. So whatever is decided in a generation was
decided by members that have the state, and outlives any minority of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from ordercast.errors import OrdercastError, RemovedError, UsageError
from ordercast.replica.checkpoint import Checkpoint
from ordercast.replica.generation import Generation, House
from ordercast.replica.hosting import Host
from ordercast.replica.lookout import POLL_S, Lookout
from ordercast.replica.machine import Machine
from ordercast.replica.rolls import Change
from ordercast.replica.seeking import Entry
from ordercast.replica.worker import Worker
from ordercast.runtime.discovery import Address, DiscoveryError, Presence
from ordercast.runtime.frames import Roll
from ordercast.runtime.group import Group
from ordercast.runtime.join import why_not
from ordercast.runtime.logs import about

__all__ = ["Life"]

SEE_OFF_S = 10.0
"""So long whoever was removed stays for the others."""

logger = logging.getLogger(__name__)


class Life:
    """Of a replica, from its start to its end."""

    def __init__(
        self,
        house: House,
        machine: Machine,
        *,
        on_change: Callable[[tuple[str, ...]], object] | None,
    ) -> None:
        self.me = house.me
        self.loop = asyncio.get_running_loop()
        """Where it lives: nothing of it may be called from another thread."""
        self._house = house
        self._worker = Worker(house, machine)
        self.pending = self._worker.pending
        workshop = self._worker.workshop
        self._lookout = Lookout(house, workshop, lambda: self.roll)
        self.seeker = self._lookout.seeker
        self._host = house.door.host = Host(
            house, self._checkpoint, lambda: workshop.steps, self._lookout.met_another
        )
        self._on_change = on_change
        self.roll: Roll | None = None
        self.group: Group | None = None
        """Of this generation, or of the last one."""
        self.failure: BaseException | None = None
        self.leaving = self.closed = False
        self.ended = asyncio.Event()
        self._endings: dict[asyncio.Task[None], Generation] = {}

    @property
    def members(self) -> tuple[str, ...]:
        return () if self.roll is None else tuple(self.roll.seats)

    @property
    def generation(self) -> int:
        return 0 if self.roll is None else self.roll.generation

    # What `replicate` calls.

    async def run(self, entry: Entry, ready: asyncio.Future[Generation]) -> None:
        """From generation to generation; `ready` gets the first one."""
        try:
            going_on: Entry | None = entry
            while going_on is not None:
                going_on = await self._live_in(going_on, ready)
            self.closed = True
            raise RemovedError(f"{self.me} has left {self._house.door.group!r}")
        except asyncio.CancelledError:
            self.closed = True
            error = UsageError("this replica is closed: it carries out nothing any more")
            self._fail(error, log=False)
            raise
        except Exception as error:
            self._fail(error, log=not self.leaving)
            if not ready.done():
                ready.set_exception(error)
        finally:
            self.ended.set()

    async def founded(
        self, timeout_s: float, on_progress: Callable[[Presence], None] | None
    ) -> None:
        """Wait until everyone has met, or has been found in a later generation."""
        told: Presence | None = None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    self.check()
                    generation = self._host.generation
                    if generation is not None:
                        now = generation.presence()
                        if now != told and on_progress is not None and generation.number == 1:
                            on_progress(now)
                        told = now
                        if generation.settled and self._host.in_state:
                            return
                    await asyncio.sleep(POLL_S / 10)
        except TimeoutError:
            if told is not None and not told.missing:
                raise DiscoveryError(
                    f"after {timeout_s:g} s the founders have not all met the same ones: somebody "
                    "has come back without what it knew; start them all afresh"
                ) from None
            missing = ", ".join(told.missing) if told is not None else "anyone"
            why = self.seeker.trouble if generation is None else await why_not(generation.node)
            raise DiscoveryError(
                f"after {timeout_s:g} s there is no connection with {missing}: {why}"
            ) from None

    async def close(self) -> None:
        """After `run`: what is left of earlier generations."""
        for generation in self._endings.values():
            generation.hurry()
        await asyncio.gather(*self._endings, return_exceptions=True)

    # A generation.

    async def _live_in(self, entry: Entry, ready: asyncio.Future[Generation]) -> Entry | None:
        """Until it ends; what comes next."""
        self._worker.move(entry)
        generation = await Generation.begin(
            self._house,
            entry.roll,
            position=self._worker.workshop.position,
            newcomers=entry.newcomers,
        )
        self._host.enter(generation)
        self.roll, self.group = generation.roll, generation.group
        taking_part = asyncio.create_task(self._take_part(generation, ready))
        tasks = [taking_part, asyncio.create_task(self._lookout.watch(generation))]
        went_on = False
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            first = taking_part if taking_part in done else done.pop()
            going_on: Entry | None = first.result()
            went_on = True
            return going_on
        finally:
            self._host.leave()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            ending = asyncio.create_task(self._end(generation))
            self._endings[ending] = generation
            ending.add_done_callback(self._endings.pop)
            if not went_on:
                generation.hurry()
                await asyncio.wait([ending])

    async def _end(self, generation: Generation) -> None:
        await generation.end()
        if self._house.keeping is not None:
            self._house.keeping.drop(generation.number)

    async def _take_part(
        self, generation: Generation, ready: asyncio.Future[Generation]
    ) -> Entry | None:
        """Carry out what is delivered, until a change."""
        self._host.in_state = True
        self._worker.begin(generation)
        if not ready.done():
            ready.set_result(generation)
        if self._on_change is not None:
            self._on_change(self.members)
        self._worker.review(generation)
        async with _beside(self._worker.feed(generation)):
            async for batch in generation.group.batches():
                roll = self._worker.carry_out(generation, batch)
                self.roll = generation.roll  # everyone may have met by now
                if roll is not None:
                    return await self._into(generation, roll)
        return None

    async def _into(self, generation: Generation, roll: Roll) -> Entry | None:
        """The next generation."""
        seat, before = roll.seats.get(self.me), generation.roll
        if seat is not None and seat.life == self._house.life:
            new = (name for name, at in roll.seats.items() if before.seats.get(name) != at)
            return Entry(roll, newcomers=frozenset(new))
        self._host.leave()
        self.roll = roll
        members = {Address.parse(each.address): None for each in roll.seats.values()}
        if self._house.life in roll.expelled or seat is not None:
            await self._see_off(members)
            if self.leaving:
                return None
            if seat is not None:
                raise RemovedError(f"another process has taken the place of {self.me}")
            raise self.seeker.removed()
        while True:  # everyone waited for us, and went on without
            entry = await self.seeker.enter(members | self.seeker.seeds, wants=True)
            if entry is not None:
                return entry
            await asyncio.sleep(POLL_S)

    async def _see_off(self, members: Iterable[Address]) -> None:
        """Stay until those who go on know it: they may need our word for that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SEE_OFF_S):
                while True:
                    found = await self.seeker.newest(members, wants=False)
                    if found is not None and found.roll.generation >= self.generation:
                        return
                    await asyncio.sleep(POLL_S / 10)

    # Little things.

    def _checkpoint(self) -> Checkpoint | None:
        return self._worker.workshop.checkpoint(self.generation)

    async def propose(self, change: Change) -> None:
        """Wait until it has come about."""
        self.check()
        await self._worker.propose(change, self._host.generation if self._host.in_state else None)

    async def all_lives(self) -> dict[str, str]:
        """Once everyone is known."""
        while True:
            self.check()
            generation = self._host.generation
            if generation is not None and generation.settled:
                return generation.lives or {}
            await asyncio.sleep(POLL_S / 10)

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _fail(self, error: BaseException, *, log: bool = True) -> None:
        if self.failure is None:
            self.failure = error
            if log:
                bug = None if isinstance(error, OrdercastError) else error
                text = f"{self.me}: {error or type(error).__name__}"
                facts = about("ended", self.me, group=self._house.door.group)
                logger.error(text, exc_info=bug, extra=facts)
        self._worker.fail(error)


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Done meanwhile; if it fails, so does the block."""
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(work)
            yield
            task.cancel()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
