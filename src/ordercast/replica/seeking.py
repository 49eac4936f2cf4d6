"""Where the group is by now: whom to ask, what to make of the answers, how to get in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from ordercast.errors import PeerError, RemovedError
from ordercast.replica.calling import Given, Words, fetch, knock, unchanged
from ordercast.replica.checkpoint import Checkpoint
from ordercast.replica.generation import House
from ordercast.runtime.discovery import Address
from ordercast.runtime.discovery.address import words as why
from ordercast.runtime.frames import Roll

__all__ = ["Entry", "Seeker", "Standing"]


@dataclass(slots=True)
class Entry:
    """Where a replica goes on."""

    roll: Roll
    checkpoint: Checkpoint | None = None
    """The state to begin with; None if the machine is in it. Taken out when the replica begins: it
    may be large, and an entry is at hand for as long as a generation lasts."""
    tried: bool = False
    """Whether the machine is in this state since it has tried it."""
    kept: bool = False
    """Whether that is on the disk already."""
    newcomers: frozenset[str] = frozenset()
    """Who was not there in the generation before, if we were."""


class Standing(NamedTuple):
    """Where a replica is."""

    generation: int
    history: str
    """Empty, as long as there is none that would be lost: then any generation is newer."""


class _Found(NamedTuple):
    roll: Roll
    where: Address


class _Tried(NamedTuple):
    """What our machine has taken, so that it may ask for a seat."""

    history: str
    """Of the group whose state it is."""
    given: Given
    stays: bool
    """Whether our machine is in it still."""


class Seeker:
    def __init__(
        self,
        house: House,
        standing: Callable[[], Standing],
        try_out: Callable[[Checkpoint], bool],
    ) -> None:
        """`try_out` raises a `UsageError` if our machine cannot be in this state, and says whether
        it is now."""
        self.seeds: dict[Address, None] = {}
        """Where members were, as far as was heard."""
        self.trouble = "nobody answers"
        """What stood in the way when somebody was last asked."""
        self.tried: _Tried | None = None
        """As long as we have no seat in that group."""
        self._house = house
        self._standing = standing
        self._try_out = try_out

    async def newest(self, addresses: Iterable[Address], *, wants: bool) -> _Found | None:
        """The newest generation of this group that somebody there is in; None if nobody says."""
        asked, (generation, history) = list(addresses), self._standing()
        words = Words(self._house.life, wants, history, generation if history else 0)
        rolls = await asyncio.gather(*(self._knock(address, words) for address in asked))
        found = [
            _Found(roll, at)
            for roll, at in zip(rolls, asked, strict=True)
            if roll is not None and history in ("", roll.history)
        ]
        return max(found, key=lambda each: each.roll.generation, default=None)

    async def enter(self, addresses: Iterable[Address], *, wants: bool) -> Entry | None:
        """Ask there for a newer generation than ours, and for a seat in it; None if we have to
        come again. Whoever was not in it before asks for a seat once it has tried the state: if it
        could not take it, its seat would count, and nobody would be there."""
        sure = bool(self._standing().history) or self.tried is not None
        found = await self.newest(addresses, wants=wants and sure)
        generation, history = self._standing()
        if found is None or (history and found.roll.generation <= generation):
            return None
        roll, house = found.roll, self._house
        if self.tried is not None and self.tried.history != roll.history:
            self.tried, sure = None, bool(history)
        members = {Address.parse(seat.address): None for seat in roll.seats.values()}
        self.seeds |= members
        if house.life in roll.expelled:
            raise self.removed()
        seat = roll.seats.get(house.me)
        if seat is not None and seat.life == house.life:
            if roll.generation == generation:  # we are in it, and have yet to hear of it
                return None
            entry = await self._taken_seat(roll, {found.where: None, **members})
            if entry is not None:
                self.tried = None
            return entry
        if seat is not None and not wants:
            raise RemovedError(f"another process has taken the place of {house.me}")
        if not wants:  # everyone waited for us, and went on without
            await self.newest(members, wants=True)
        elif not sure:
            house.check_private(members)
            given = await self.fetch(roll.generation, {found.where: None, **members})
            if given is not None:
                stays = self._try_out(given.checkpoint)
                self.tried = _Tried(roll.history, given, stays)
                await self.newest(members, wants=True)
        return None

    async def _taken_seat(self, roll: Roll, places: Iterable[Address]) -> Entry | None:
        """With the state of the generation where our seat is: what was tried, if nothing has been
        carried out since. Then it is the one that this generation began with."""
        generation, tried = roll.generation, self.tried
        if tried is not None:
            with contextlib.suppress(OSError, PeerError):  # it has gone, or is elsewhere by now
                if await unchanged(self._house.door, tried.given, generation):
                    start = replace(tried.given.checkpoint, generation=generation, position=0)
                    return Entry(roll, start, tried=tried.stays)
        given = await self.fetch(generation, places)
        return None if given is None else Entry(roll, given.checkpoint)

    async def fetch(self, generation: int, places: Iterable[Address]) -> Given | None:
        """The state that somebody has come to in this generation."""
        for address in places:
            if address == self._house.door.address:
                continue
            try:
                return await fetch(self._house.door, address, generation)
            except (OSError, PeerError) as error:  # it has gone, or is further by now
                self.trouble = str(error) or f"{address} does not answer"
        return None

    def removed(self) -> RemovedError:
        keeping = self._house.keeping
        kept = "what it has kept" if keeping is None else f"the directory {keeping.directory}"
        return RemovedError(
            f"{self._house.me} was removed from {self._house.door.group!r}: to be a member again "
            f"it has to start without {kept}"
        )

    async def _knock(self, address: Address, words: Words) -> Roll | None:
        try:
            return await knock(self._house.door, address, words)
        except OSError as error:
            self.trouble = f"{address} cannot be reached: {why(error)}"
        except PeerError as error:
            self.trouble = str(error)
        return None
