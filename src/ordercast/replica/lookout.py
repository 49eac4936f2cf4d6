"""What looks after the others, as long as a generation lasts: are they there, are we with them?

    if some are away:   ask there for a newer generation than ours
    if all are away:    ask wherever members have ever been
    if we have moved:   tell those who can be reached
    if everyone waits for a member that is away:
                        propose a generation without it; it comes back as a newcomer does
    if too few are here:
                        say so, once
    if another group has our name, and has run for longer:
                        give way to it if ours has done nothing yet, and else say so

Going where a newer generation was found is for `life`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from ordercast.replica.commands import Met
from ordercast.replica.generation import Generation, House
from ordercast.replica.machine import Workshop
from ordercast.replica.rolls import Change
from ordercast.replica.seeking import Entry, Seeker, Standing
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import Roll
from ordercast.runtime.logs import about

__all__ = ["POLL_S", "Lookout"]

POLL_S = 0.25
"""How often to look."""
MISSED_S = 3.0
"""Nobody is told of members that are back at once."""

logger = logging.getLogger(__name__)


class Lookout:
    def __init__(self, house: House, workshop: Workshop, roll: Callable[[], Roll | None]) -> None:
        """`roll` gives that of this generation, or of the last one."""
        self.seeker = Seeker(house, self._standing, workshop.try_out)
        self._house = house
        self._workshop = workshop
        self._roll = roll
        self._other: Address | None = None
        """Where a group of the same name is that has run for longer than ours."""
        self._missing_since: float | None = None
        """When it was first seen that too few are here."""
        self._told_missing = False

    async def watch(self, generation: Generation) -> Entry:
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
            seat = generation.roll.seats[self._house.me]
            if seat.address != str(self._house.door.address):  # we have moved
                others = dict.fromkeys(generation.others())
                await self.seeker.newest(others | self.seeker.seeds, wants=True)
            absent = dict.fromkeys(generation.absent())
            if self._other is not None and self._is_idle:
                absent[self._other] = None
            if not absent:
                continue
            if len(absent) == len(self._members) - 1:  # all of them: they may be others by now
                absent |= self.seeker.seeds
            entry = await self.seeker.enter(absent, wants=not self._history)
            if entry is not None:
                return entry

    def _look_at_majority(self, generation: Generation) -> None:
        """If those who are here are too few, say so, once."""
        missing = generation.outnumbered() if generation.settled else []
        if not missing:
            self._missing_since, self._told_missing = None, False
            return
        now = asyncio.get_running_loop().time()
        if self._missing_since is None:
            self._missing_since = now
        if now - self._missing_since > MISSED_S and not self._told_missing:
            self._told_missing = True
            logger.warning(
                "%s: nothing is carried out while so few of %r are here; missing: %s",
                *(self._house.me, self._house.door.group, ", ".join(missing)),
                extra=about("majority_missing", self._house.me, group=self._house.door.group),
            )

    def met_another(self, name: str, where: Address, generation: int) -> None:
        """A member of a group of this name that goes back to another beginning."""
        if generation <= self._generation or self._other is not None:
            return
        self._other = where
        if not self._is_idle:
            logger.error(
                "%s: there are two groups called %r: that of %s at %s is in generation %d, and "
                "ours in %d; whoever began afresh should have been started with via=",
                *(
                    self._house.me,
                    self._house.door.group,
                    name,
                    where,
                    generation,
                    self._generation,
                ),
                extra=about("two_groups", self._house.me, group=self._house.door.group),
            )

    @property
    def _generation(self) -> int:
        roll = self._roll()
        return 0 if roll is None else roll.generation

    @property
    def _members(self) -> Collection[str]:
        roll = self._roll()
        return () if roll is None else roll.seats

    @property
    def _is_idle(self) -> bool:
        """Whether ours is a group that has yet to do anything."""
        return self._generation == 1 and not self._workshop.busy

    @property
    def _history(self) -> str:
        """Empty, as long as there is none that would be lost."""
        roll = self._roll()
        gives_way = self._other is not None and self._is_idle
        return "" if roll is None or gives_way else roll.history

    def _standing(self) -> Standing:
        return Standing(self._generation, self._history)
