"""What a program holds in its hands: its state, the same on every member, whoever comes and goes.

on do(command):           send it in this generation, again in the next if it came too late
on delivery of a command: carry it out, unless it was carried out before
on delivery of a change:  this generation ends here, for everyone; save the state, and begin
                          the next one if we have a seat there
on a newer generation elsewhere:
                          we have missed how ours ended: if we have a seat there, fetch the
                          state and go there; if not, knock
on a knock:               say who the members are; propose to add whoever wants a seat
if everyone waits for a member that is away:
                          propose a generation without it; it comes back as a newcomer does
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, NamedTuple, Protocol

from ordercast.errors import PeerError, RemovedError, UsageError
from ordercast.replica.calling import fetch, knock
from ordercast.replica.checkpoint import Applied, Checkpoint, encode
from ordercast.replica.commands import COMMAND_BYTES_MAX, decode
from ordercast.replica.commands import encode as encode_message
from ordercast.replica.generation import Generation, House
from ordercast.replica.keeping import Kept
from ordercast.replica.pending import Pending
from ordercast.replica.rolls import EXPELLED_MAX, SEATS_MAX, Change, after, check
from ordercast.runtime.dialling import words
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import PIECE_BYTES, Bye, Fetch, Frame, Knock, Piece, Roll, Seat
from ordercast.runtime.group import Batch, Group
from ordercast.runtime.logs import about
from ordercast.runtime.status import Status
from ordercast.runtime.surroundings import surroundings
from ordercast.runtime.view import View

__all__ = ["Entry", "Machine", "Replica"]

POLL_S = 0.25
MANY = 64
"""With so many commands under way, company is worth waiting for."""
EARLY_BYTES = 256 * 2**20
"""So much may be delivered while the state is being fetched; then the others have to wait."""
INVITE_EVERY_S = 1.0
OFFERS_MAX = 4
"""So many newcomers may fetch a state at the same time; the others come again."""
OFFER_S = 30.0
"""How long a state is kept for one who has stopped asking."""

logger = logging.getLogger(__name__)


class Machine(Protocol):
    """A program's state. The same commands in the same order must lead to the same state: what
    `apply` does may depend on nothing else, neither a clock nor chance."""

    def apply(self, command: bytes, sender: str) -> Any:
        """Carry out a command. What it returns or raises is for whoever gave the command; it
        raises before it changes anything, or not at all."""

    def save(self) -> bytes:
        """The whole state, for `load` on another machine or in another life."""

    def load(self, state: bytes) -> None:
        """Be in this state, whatever was before."""


class Entry(NamedTuple):
    """Where a replica goes on."""

    roll: Roll
    checkpoint: Checkpoint | None = None
    """The state to begin with; None if the machine is in it, or it has to be fetched."""
    fetch: bool = False
    kept: bool = False
    """Whether that is on the disk already."""


class _Offer(NamedTuple):
    data: bytes
    last: float
    """When somebody last asked for a piece of it."""


class Replica:
    """Made by `ordercast.replicate`. Any task may give commands."""

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
        self._machine = machine
        self._on_change = on_change
        self._generation: Generation | None = None
        """The one that we are in; None in between."""
        self._roll: Roll | None = None
        self._group: Group | None = None
        """The one of this generation, or of the last one."""
        self._in_state = False
        """Whether the machine has come to where this generation is."""
        self._applied: Applied = {}
        self._position = 0
        self._save_at = 0
        """How much is written to the journal when the state is to be saved again."""
        self._pending = Pending(surroundings().token())
        self._proposals: list[tuple[Change, asyncio.Future[None]]] = []
        self._invited: dict[str, float] = {}
        """Newcomers, and when they were last proposed in this generation."""
        self._offers: dict[str, _Offer] = {}
        self._failure: BaseException | None = None
        self._leaving = False
        self._ended = asyncio.Event()
        self._endings: dict[asyncio.Task[None], Generation] = {}
        self.seeds: dict[Address, None] = {}
        """Where members were, as far as was heard."""
        self.trouble = "nobody answers"
        """What stood in the way when somebody was last asked."""

    # What a program calls.

    def do(self, command: bytes) -> asyncio.Future[Any]:
        """Have a command carried out on every replica; await what it led to. It is on its way,
        whether anybody waits or not; commands that are given in a row are carried out in a row."""
        if not isinstance(command, bytes | bytearray | memoryview):
            raise UsageError(f"a command of type {type(command).__name__}: give bytes")
        if len(command) > COMMAND_BYTES_MAX:
            size = len(command)
            raise UsageError(f"a command of {size} bytes: {COMMAND_BYTES_MAX} is the limit")
        self._check()
        return self._pending.give(bytes(command))

    async def sync(self) -> None:
        """Whatever anyone has seen done by now is done here: read the state then."""
        await self.do(b"")

    async def remove(self, *names: str) -> None:
        """These are not members any more, and may not come back with what they know."""
        lives = (await self._until_all_are_known()).lives or {}
        for name in names:
            if name not in lives:
                raise UsageError(f"{name!r} is no member: there are {', '.join(lives)}")
        if len(set(names)) == len(lives):
            raise UsageError("somebody has to stay: the last one just closes")
        await self._propose(Change({}, {name: lives[name] for name in names}, True, lives))

    async def leave(self) -> None:
        """Be no member any more. Whoever only closes keeps its seat, and is waited for."""
        self._leaving = True
        with contextlib.suppress(RemovedError):
            await self.remove(self.me)

    @property
    def members(self) -> tuple[str, ...]:
        return () if self._roll is None else tuple(self._roll.seats)

    @property
    def generation(self) -> int:
        """How often the members have changed, from 1."""
        return 0 if self._roll is None else self._roll.generation

    @property
    def view(self) -> View:
        """Who the members are, and how they look from here."""
        return self._last_group.view

    def status(self) -> Status:
        """Everything that is counted here; it begins anew with each generation."""
        return self._last_group.status()

    @property
    def _last_group(self) -> Group:
        assert self._group is not None, "a replica is handed out once it has members"
        return self._group

    async def ended(self) -> None:
        """Wait until this replica cannot go on, or has left; raises why."""
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    # What `replicate` calls.

    async def run(self, entry: Entry, ready: asyncio.Future[Generation]) -> None:
        """From generation to generation; `ready` gets the first one."""
        try:
            going_on: Entry | None = entry
            while going_on is not None:
                going_on = await self._live_in(going_on, ready)
            raise RemovedError(f"{self.me} has left {self._house.door.group!r}")
        except asyncio.CancelledError:
            closed = UsageError("this replica is closed: it carries out nothing any more")
            self._fail(closed, log=False)
            raise
        except Exception as error:
            self._fail(error, log=not self._leaving)
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._ended.set()

    async def close(self) -> None:
        """After `run`: what is left of earlier generations."""
        for generation in self._endings.values():
            generation.hurry()
        await asyncio.gather(*self._endings, return_exceptions=True)

    async def newest(self, addresses: Iterable[Address], *, wants: bool) -> Roll | None:
        """Of the newest generation that somebody there is in; None if nobody says."""
        rolls = await asyncio.gather(*(self._knock(address, wants=wants) for address in addresses))
        return max(filter(None, rolls), key=lambda roll: roll.generation, default=None)

    async def enter(self, addresses: Iterable[Address], *, wants: bool) -> Entry | None:
        """Ask there for a newer generation than ours, and for a seat in it; None if we have to
        come again."""
        roll = await self.newest(addresses, wants=wants)
        if roll is None or roll.generation <= self.generation:
            return None
        members = {Address.parse(seat.address): None for seat in roll.seats.values()}
        self.seeds |= members
        if self._house.life in roll.expelled:
            raise RemovedError(
                f"{self.me} was removed from {self._house.door.group!r}: to be a member again it "
                "has to start without what it has kept"
            )
        seat = roll.seats.get(self.me)
        if seat is not None and seat.life == self._house.life:
            return Entry(roll, fetch=True)
        if seat is not None and not wants:
            raise RemovedError(f"another process has taken the place of {self.me}")
        if not wants:  # everyone waited for us, and went on without
            await self.newest(members, wants=True)
        return None

    # What the door calls.

    def knocked(self, knock: Knock) -> Frame:
        generation = self._generation
        if generation is None or (lives := generation.lives) is None:
            return Bye(f"{self.me} is not in a generation where everyone is known")
        name, roll, seat = knock.name, generation.roll, Seat(knock.address, knock.life)
        if not knock.wants or roll.seats.get(name) == seat or knock.life in roll.expelled:
            return roll
        try:
            self._house.check_private([check(name, seat)])
        except UsageError as error:
            return Bye(str(error))
        if name in generation.group.view.present and lives.get(name) != knock.life:
            return Bye(f"{name} is a member already, and is here: choose another name")
        if any(at.address == seat.address for other, at in roll.seats.items() if other != name):
            return Bye(f"another member is at {seat.address}")
        if name not in roll.seats and len(roll.seats) >= SEATS_MAX:
            return Bye(f"there are {len(roll.seats)} members, and no more than {SEATS_MAX} can be")
        now = self.loop.time()
        if now - self._invited.get(name, -INVITE_EVERY_S) >= INVITE_EVERY_S:
            if len(self._invited) >= SEATS_MAX:  # nobody has so much to do with newcomers
                self._invited.clear()
            self._invited[name] = now
            self._send(generation, Change({name: seat}, {}, False, lives))
        return roll

    def fetched(self, wish: Fetch) -> Frame:
        if self._generation is None or self.generation != wish.generation or not self._in_state:
            return Bye(f"{self.me} has no state of generation {wish.generation}")
        if wish.name not in self.members:
            return Bye(f"{wish.name} is no member")
        now = self.loop.time()
        for token in [t for t, offer in self._offers.items() if now - offer.last > OFFER_S]:
            del self._offers[token]
        token = wish.token
        if not token:
            if len(self._offers) >= OFFERS_MAX:
                return Bye(f"{self.me} is giving its state to {OFFERS_MAX} others: come again")
            token = surroundings().token()
            self._offers[token] = _Offer(encode(self._checkpoint()), now)
        if token not in self._offers:
            return Bye(f"{self.me} does not have that state any more")
        data = self._offers[token].data
        piece = data[wish.offset : wish.offset + PIECE_BYTES]
        if wish.offset + len(piece) >= len(data):
            del self._offers[token]
        else:
            self._offers[token] = _Offer(data, now)
        return Piece(token, len(data), piece)

    # A generation.

    async def _live_in(self, entry: Entry, ready: asyncio.Future[Generation]) -> Entry | None:
        """Until it ends; what comes next."""
        self._move(entry)
        generation = await Generation.begin(self._house, entry.roll, position=self._position)
        if self._house.keeping is not None:
            self._house.keeping.drop_older()
        self._generation, self._roll = generation, generation.roll
        self._group = generation.group
        self._invited.clear()
        self._offers.clear()
        taking_part = asyncio.create_task(self._take_part(generation, ready, fetch=entry.fetch))
        tasks = [taking_part, asyncio.create_task(self._watch(generation))]
        went_on = False
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            first = taking_part if taking_part in done else done.pop()
            going_on: Entry | None = first.result()
            went_on = True
            return going_on
        finally:
            self._generation, self._in_state = None, False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            ending = asyncio.create_task(generation.end())
            self._endings[ending] = generation
            ending.add_done_callback(self._endings.pop)
            if not went_on:
                generation.hurry()
                await asyncio.wait([ending])

    def _move(self, entry: Entry) -> None:
        """Be in the state that the generation begins with, as far as it is here."""
        gone = [name for name in self._applied if name not in entry.roll.seats]
        for name in gone[:-EXPELLED_MAX]:  # whoever was left behind may yet come back with some
            del self._applied[name]
        self._position = 0
        keeping, start = self._house.keeping, entry.checkpoint
        if start is not None:
            self._load(start)
        elif entry.roll.generation > 1 and not entry.fetch and keeping is not None:
            start = self._checkpoint(entry.roll.generation)
        if keeping is not None and not entry.kept:
            keeping.begin(Kept(self._house.door.group, self.me, entry.roll), start)

    async def _take_part(
        self, generation: Generation, ready: asyncio.Future[Generation], *, fetch: bool
    ) -> Entry | None:
        """Carry out what is delivered, until a change."""
        early = await self._catch_up(generation) if fetch else []
        self._in_state = True
        # What the lives before have written counts as well: after a restart it is soon saved.
        self._save_at = 0 if generation.recovered else self._house.settings.segment_bytes
        self._pending.start_anew(self._applied.get(self.me))
        if not ready.done():
            ready.set_result(generation)
        if self._on_change is not None:
            self._on_change(self.members)
        self._review(generation)
        async with _beside(self._feed(generation)):
            for batch in early:
                if (roll := self._carry_out(generation, batch)) is not None:
                    return self._into(roll)
            async for batch in generation.group.batches():
                if (roll := self._carry_out(generation, batch)) is not None:
                    return self._into(roll)
        return None

    async def _catch_up(self, generation: Generation) -> list[Batch]:
        """Fetch the state from another member; what is delivered until then."""
        early: list[Batch] = []
        async with _beside(self._lay_by(generation, early)):
            while True:
                for address in generation.others():
                    try:
                        checkpoint = await fetch(self._house.door, address, self.generation)
                    except (OSError, PeerError) as error:  # it has gone, or is further by now
                        self.trouble = str(error)
                        continue
                    self._load(checkpoint)
                    if self._house.keeping is not None:
                        self._house.keeping.save(checkpoint)
                    return early
                await asyncio.sleep(POLL_S)

    async def _lay_by(self, generation: Generation, early: list[Batch]) -> None:
        """So that nobody waits for us meanwhile; unless it becomes too much."""
        size = 0
        async for batch in generation.group.batches():
            early.append(batch)
            size += sum(map(len, batch.payloads))
            if size > EARLY_BYTES:
                return

    def _load(self, checkpoint: Checkpoint) -> None:
        self._machine.load(checkpoint.state)
        self._applied, self._position = dict(checkpoint.applied), checkpoint.position

    def _carry_out(self, generation: Generation, batch: Batch) -> Roll | None:
        """The next roll, if the generation ends here."""
        for position, payload in enumerate(batch.payloads, batch.position):
            if position <= self._position:
                continue
            self._position = position
            change = self._take(batch.sender, payload)
            if change is not None:
                if (roll := after(generation.roll, change)) is not None:
                    return roll
                self._review(generation)
        self._save_now_and_then(generation)
        return None

    def _take(self, sender: str, payload: bytes) -> Change | None:
        """Carry commands out; a change is for the caller."""
        try:
            message = decode(payload)
        except PeerError as error:  # everyone gets the same, and does nothing with it
            logger.warning("%s: what %s sent is left out: %s", self.me, sender, error)
            return None
        if isinstance(message, Change):
            return message
        session, number = self._applied.get(sender, ("", 0))
        done = max(number - message.first + 1, 0) if session == message.session else 0
        bodies = message.bodies[done:]
        if bodies:
            last = message.first + len(message.bodies) - 1
            self._applied[sender] = message.session, last
            self._apply(bodies, sender, own=message.session == self._pending.session)
        return None

    def _apply(self, bodies: list[bytes], sender: str, *, own: bool) -> None:
        apply, settle = self._machine.apply, self._pending.settle
        for body in bodies:
            result, refused = None, None
            if body:  # without, somebody only wants to know when it is there
                try:
                    result = apply(body, sender)
                except Exception as error:
                    refused = error
            if own:
                settle(result, refused)

    def _into(self, roll: Roll) -> Entry | None:
        seat = roll.seats.get(self.me)
        if seat is not None and seat.life == self._house.life:
            return Entry(roll)
        if self._leaving:
            return None
        raise RemovedError(f"{self.me} was removed from {self._house.door.group!r}")

    async def _feed(self, generation: Generation) -> None:
        """With many under way, the next ones wait for company: a message costs what it costs,
        however many commands are in it."""
        while True:
            await generation.group.send_many(await self._pending.unsent())
            if len(self._pending) > MANY:
                await asyncio.sleep(self._house.settings.linger_s)

    async def _watch(self, generation: Generation) -> Entry:
        """Are we where the others are, and can they go on?"""
        while True:
            await asyncio.sleep(POLL_S)
            if stuck := generation.stuck():
                self._send(generation, Change({}, stuck, False, generation.lives or {}))
            absent = dict.fromkeys(generation.absent())
            if not absent:
                continue
            if len(absent) == len(self.members) - 1:  # all of them: they may be others by now
                absent |= self.seeds
            if (entry := await self.enter(absent, wants=False)) is not None:
                return entry

    # Little things.

    def _checkpoint(self, generation: int | None = None) -> Checkpoint:
        number = self.generation if generation is None else generation
        return Checkpoint(number, self._position, dict(self._applied), self._machine.save())

    def _save_now_and_then(self, generation: Generation) -> None:
        """So that the journal need not reach back to the beginning; a large state less often."""
        journal, keeping = generation.node.journal, self._house.keeping
        if journal is None or keeping is None or journal.written_bytes < self._save_at:
            return
        checkpoint = self._checkpoint()
        keeping.save(checkpoint)
        settings = self._house.settings
        often = max(settings.segment_bytes, min(len(checkpoint.state), settings.keep_bytes // 2))
        self._save_at = journal.written_bytes + often

    async def _propose(self, change: Change) -> None:
        """Wait until it has come about."""
        self._check()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proposals.append((change, done))
        if self._generation is not None:
            self._review(self._generation)
        await done

    def _review(self, generation: Generation) -> None:
        """Is there still something to propose?"""
        self._proposals = [each for each in self._proposals if not each[1].done()]
        for change, done in self._proposals:
            if after(generation.roll, change) is None:
                done.set_result(None)
            else:
                self._send(generation, change)

    def _send(self, generation: Generation, change: Change) -> None:
        generation.node.outgoing.urgent(encode_message(change))

    async def _until_all_are_known(self) -> Generation:
        while self._generation is None or self._generation.lives is None:
            self._check()
            await asyncio.sleep(POLL_S / 10)
        return self._generation

    async def _knock(self, address: Address, *, wants: bool) -> Roll | None:
        try:
            return await knock(self._house.door, address, self._house.life, wants=wants)
        except OSError as error:
            self.trouble = f"{address} cannot be reached: {words(error)}"
        except PeerError as error:
            self.trouble = str(error)
        return None

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: BaseException, *, log: bool = True) -> None:
        if self._failure is None:
            self._failure = error
            if log:
                logger.error("%s: %s", self.me, error, extra=about("ended", self.me))
        self._pending.fail(error)
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
