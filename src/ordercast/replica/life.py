"""From generation to generation: what a replica does.

    on do(command):           send it in this generation, again in the next if it came too late
    on delivery of a command: carry it out
    on delivery of a change:  this generation ends here, for everyone; save the state, and begin
                              the next one if we have a seat there; if not, knock, unless we were
                              sent away
    on a newer generation elsewhere:
                              we have missed how ours ended: if we have a seat there, fetch the
                              state, and only then leave ours; if not, knock
    on a knock:               say who the members are; propose to add whoever wants a seat
    if everyone waits for a member that is away:
                              propose a generation without it; it comes back as a newcomer does

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
from ordercast.replica.commands import Met
from ordercast.replica.generation import Generation, House
from ordercast.replica.hosting import Host
from ordercast.replica.keeping import Kept
from ordercast.replica.machine import Machine, Workshop
from ordercast.replica.pending import Pending
from ordercast.replica.rolls import Change, after
from ordercast.replica.seeking import Entry, Seeker, Standing
from ordercast.runtime.discovery import Address, DiscoveryError, Presence
from ordercast.runtime.frames import Roll
from ordercast.runtime.group import Batch, Group
from ordercast.runtime.join import why_not
from ordercast.runtime.logs import about
from ordercast.runtime.surroundings import surroundings

__all__ = ["Life"]

POLL_S = 0.25
MANY = 64
"""With so many commands under way, company is worth waiting for."""
MISSED_S = 3.0
"""Nobody is told of members that are back at once."""
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
        self.pending = Pending(surroundings().token())
        self._workshop = Workshop(machine, self.pending, self.me)
        self._host = house.door.host = Host(house, self._checkpoint, self._met_another)
        self._on_change = on_change
        self.roll: Roll | None = None
        self.group: Group | None = None
        """Of this generation, or of the last one."""
        self._save_at = 0
        """How much is written to the journal when the state is to be saved again."""
        self._proposals: list[tuple[Change, asyncio.Future[None]]] = []
        self._other: Address | None = None
        """Where a group of the same name is that has run for longer than ours."""
        self._told_missing = 0.0
        """Since when too few have been here; infinity once that was told."""
        self.failure: BaseException | None = None
        self.leaving = self.closed = False
        self.ended = asyncio.Event()
        self._endings: dict[asyncio.Task[None], Generation] = {}
        self.seeker = Seeker(house, self._standing)

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

    def _met_another(self, name: str, where: Address, generation: int) -> None:
        """A member of a group of this name that goes back to another beginning."""
        if generation <= self.generation or self._other is not None:
            return
        self._other = where
        if not self._is_idle:
            logger.error(
                "%s: there are two groups called %r: that of %s at %s is in generation %d, and "
                "ours in %d; whoever began afresh should have been started with via=",
                *(self.me, self._house.door.group, name, where, generation, self.generation),
                extra=about("two_groups", self.me),
            )

    @property
    def _is_idle(self) -> bool:
        """Whether ours is a group that has yet to do anything."""
        return self.generation == 1 and not self._workshop.busy

    @property
    def _history(self) -> str:
        """Empty, as long as there is none that would be lost."""
        generation = self._host.generation
        roll = generation.roll if generation is not None else self.roll
        gives_way = self._other is not None and self._is_idle
        return "" if roll is None or gives_way else roll.history

    def _standing(self) -> Standing:
        return Standing(self.generation, self._history)

    # A generation.

    async def _live_in(self, entry: Entry, ready: asyncio.Future[Generation]) -> Entry | None:
        """Until it ends; what comes next."""
        self._move(entry)
        generation = await Generation.begin(
            self._house,
            entry.roll,
            position=self._workshop.position,
            newcomers=entry.newcomers,
        )
        self._host.enter(generation)
        self.roll, self.group = generation.roll, generation.group
        taking_part = asyncio.create_task(self._take_part(generation, ready))
        tasks = [taking_part, asyncio.create_task(self._watch(generation))]
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
            self._house.keeping.drop_older()

    def _move(self, entry: Entry) -> None:
        """Be in the state that the generation begins with."""
        keeping, start = self._house.keeping, entry.checkpoint
        self._workshop.move(entry.roll)
        if start is not None:
            self._workshop.load(start)
        elif entry.roll.generation > 1 and keeping is not None:
            start = self._workshop.checkpoint(entry.roll.generation)
        if keeping is not None and not entry.kept:
            keeping.begin(Kept(self._house.door.group, self.me, entry.roll), start)

    async def _take_part(
        self, generation: Generation, ready: asyncio.Future[Generation]
    ) -> Entry | None:
        """Carry out what is delivered, until a change."""
        self._host.in_state = True
        # What the lives before have written counts as well: after a restart it is soon saved.
        self._save_at = 0 if generation.recovered else self._house.settings.segment_bytes
        self._workshop.begin()
        if not ready.done():
            ready.set_result(generation)
        if self._on_change is not None:
            self._on_change(self.members)
        self._review(generation)
        async with _beside(self._feed(generation)):
            async for batch in generation.group.batches():
                if (roll := self._carry_out(generation, batch)) is not None:
                    return await self._into(generation, roll)
        return None

    def _carry_out(self, generation: Generation, batch: Batch) -> Roll | None:
        """The next roll, if the generation ends here."""
        for position, payload in enumerate(batch.payloads, batch.position):
            message = self._workshop.take(batch.sender, payload, position)
            if isinstance(message, Met):
                generation.heard(batch.sender, message.lives)
                self.roll = generation.roll
            elif message is not None:
                if (roll := after(generation.roll, message)) is not None:
                    return roll
                self._review(generation)
        self._save_now_and_then(generation)
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

    async def _feed(self, generation: Generation) -> None:
        """With many under way, the next ones wait for company: a message costs what it costs,
        however many commands are in it."""
        await generation.begun.wait()
        while True:
            await generation.group.send_many(await self.pending.unsent())
            if len(self.pending) > MANY:
                await asyncio.sleep(self._house.settings.linger_s)

    async def _watch(self, generation: Generation) -> Entry:
        """Are we where the others are, do they find us, and can they go on?"""
        told = False
        while True:
            await asyncio.sleep(POLL_S)
            self._look_at_majority(generation)
            generation.look_after_newcomers()
            lives = generation.lives
            if not generation.settled and not told and lives is not None:
                told = True
                generation.propose(Met(lives))
            if stuck := generation.stuck():
                generation.propose(Change({}, stuck, False))
            seat = generation.roll.seats[self.me]
            if seat.address != str(self._house.door.address):  # we have moved
                others = dict.fromkeys(generation.others())
                await self.seeker.newest(others | self.seeker.seeds, wants=True)
            absent = dict.fromkeys(generation.absent())
            if self._other is not None and self._is_idle:
                absent[self._other] = None
            if not absent:
                continue
            if len(absent) == len(self.members) - 1:  # all of them: they may be others by now
                absent |= self.seeker.seeds
            entry = await self.seeker.enter(absent, wants=not self._history)
            if entry is not None:
                return entry

    def _look_at_majority(self, generation: Generation) -> None:
        """If those who are here are too few, say so, once."""
        missing = generation.outnumbered() if generation.settled else []
        if missing and not self._told_missing:
            self._told_missing = self.loop.time()
        elif not missing:
            self._told_missing = 0.0
        elif 0 < self._told_missing < self.loop.time() - MISSED_S:
            self._told_missing = float("inf")
            logger.warning(
                "%s: nothing is carried out while so few of %r are here; missing: %s",
                *(self.me, self._house.door.group, ", ".join(missing)),
                extra=about("majority_missing", self.me),
            )

    # Little things.

    def _checkpoint(self) -> Checkpoint | None:
        return self._workshop.checkpoint(self.generation)

    def _save_now_and_then(self, generation: Generation) -> None:
        """So that the journal need not reach back to the beginning; a large state less often."""
        journal, keeping = generation.node.journal, self._house.keeping
        if journal is None or keeping is None or journal.written_bytes < self._save_at:
            return
        checkpoint, settings = self._checkpoint(), self._house.settings
        size = 0
        if checkpoint is not None:
            keeping.save(checkpoint)
            journal.need_from(journal.segment[0])
            size = len(checkpoint.state)
        often = max(settings.segment_bytes, min(size, settings.keep_bytes // 2))
        self._save_at = journal.written_bytes + often

    async def propose(self, change: Change) -> None:
        """Wait until it has come about."""
        self.check()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals.append((change, done))
        if self._host.in_state and self._host.generation is not None:
            self._review(self._host.generation)
        await done

    def _review(self, generation: Generation) -> None:
        """Is there still something to propose?"""
        self._proposals = [each for each in self._proposals if not each[1].done()]
        for change, done in self._proposals:
            if after(generation.roll, change) is None:
                done.set_result(None)
            else:
                generation.propose(change)

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
                logger.error(text, exc_info=bug, extra=about("ended", self.me))
        self.pending.fail(error)
        for _, done in self._proposals:
            if not done.done():
                done.set_exception(error)


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
