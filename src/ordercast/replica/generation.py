"""A member in one generation: a group that does not change, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from msgspec.structs import replace

from ordercast.protocols import catalog
from ordercast.replica.commands import Met, encode
from ordercast.replica.keeping import Keeping
from ordercast.replica.rolls import Change, agreed, charter
from ordercast.runtime.discovery import Address, Presence
from ordercast.runtime.door import Door
from ordercast.runtime.frames import Roll
from ordercast.runtime.group import Group
from ordercast.runtime.living import living
from ordercast.runtime.logs import about
from ordercast.runtime.node import Node
from ordercast.runtime.recording import open_log
from ordercast.runtime.settings import Settings

__all__ = ["ALGORITHM", "Generation", "House"]

ALGORITHM = ("total_consensus", "direct")
NEWCOMER_S = 60.0
"""So long nobody waits for one who has not come yet: it may be fetching a large state."""
BACK_WITHIN_S = 2.0
"""Whoever is started again at once is back by then, and need not fetch the state."""
PROPOSALS_MAX = 64
"""So many different things are proposed by one member: without a majority, nothing comes of any."""
LINGER_S = 1.0
"""So long a member stays in a generation that has ended, for those who have yet to find out."""

logger = logging.getLogger(__name__)


class House:
    """What stays while generations come and go."""

    def __init__(
        self,
        door: Door,
        *,
        life: str,
        keeping: Keeping | None,
        settings: Settings,
        trace: Path | None,
        check_private: Callable[[Iterable[Address]], None],
    ) -> None:
        """`check_private` raises a `UsageError` if members may not be there."""
        self.door = door
        self.me = door.name
        self.life = life
        self.keeping = keeping
        # Nobody is given up: whoever is waited for in vain is left behind, and may come back.
        self.settings = replace(settings, dead_after_s=None)
        self.trace = trace
        self.check_private = check_private
        self.listed: dict[str, Address] = {}
        """Where members are, as whoever started this one has it."""
        self._turns: dict[str, int] = {}
        self.roll: Roll | None = None

    async def locate(self, name: str) -> Address | None:
        """Where to try it next: a member may have moved, and so may all of them at once."""
        turn = self._turns[name] = self._turns.get(name, 0) + 1
        if turn % 2 and name in self.listed:
            return self.listed[name]
        seat = self.roll.seats.get(name) if self.roll is not None else None
        return Address.parse(seat.address) if seat is not None else None


class Generation:
    def __init__(self, house: House, roll: Roll, node: Node, *, recovered: bool) -> None:
        self.node = node
        self.recovered = recovered
        algorithm = " over ".join(ALGORITHM)
        self.group = Group(node, name=house.door.group, algorithm=algorithm, uniform=True)
        self._house = house
        self._roll = roll
        self._stack = contextlib.AsyncExitStack()
        self._hurry = asyncio.Event()
        self._met: dict[str, dict[str, str]] = {}
        self._proposed: set[bytes] = set()
        """By us, in this life."""
        self.begun = asyncio.Event()
        """Set once it is settled."""
        if roll.history:
            self.begun.set()
        self._began = asyncio.get_running_loop().time()

    @classmethod
    async def begin(
        cls, house: House, roll: Roll, *, position: int, newcomers: Collection[str]
    ) -> Generation:
        """Take one's seat. What comes after `position` is delivered, and perhaps some before."""
        door, keeping = house.door, house.keeping
        names, seats = tuple(roll.seats), list(roll.seats.values())
        house.roll = roll
        index = names.index(house.me)
        replay_from = None
        if keeping is not None and (taken := keeping.taken()) is not None:
            replay_from = min(position, taken) + 1
        async with contextlib.AsyncExitStack() as stack:
            log = None
            if house.trace is not None:
                place = house.trace / str(roll.generation)
                run = f"{door.group}-{roll.generation}"
                log = stack.enter_context(open_log(place, house.me, names, ALGORITHM, run=run))
            node, recovered = await stack.enter_async_context(
                living(
                    lambda: catalog.build(*ALGORITHM, index, len(names)),
                    door=door,
                    names=names,
                    charter=charter(roll, ALGORITHM),
                    settings=house.settings,
                    log=log,
                    journal=keeping.journal if keeping is not None else None,
                    sync=keeping.sync if keeping is not None else "write",
                    replay_from=replay_from,
                    life=house.life,
                    lives={
                        place: seat.life
                        for place, seat in enumerate(seats)
                        if seat.life and place != index
                    },
                )
            )
            addresses = {place: Address.parse(seat.address) for place, seat in enumerate(seats)}
            node.dial(addresses, house.locate)
            generation = cls(house, roll, node, recovered=recovered)
            coming = (place for place, name in enumerate(names) if name in newcomers)
            node.outgoing.exempt = frozenset(coming)
            if node.journal is not None:
                node.journal.need_from(1)
            if not generation.settled and position and generation.lives is not None:
                generation.settle(generation.lives)  # it was, or nothing had been carried out
            generation._stack = stack.pop_all()
        members = ", ".join(names)
        text = f"generation {roll.generation} of {door.group!r}: {members}"
        logger.info("%s: %s", house.me, text, extra=about("generation", house.me, group=door.group))
        return generation

    @property
    def number(self) -> int:
        return self._roll.generation

    @property
    def roll(self) -> Roll:
        return self._roll

    @property
    def lives(self) -> dict[str, str] | None:
        """Of everyone; None as long as somebody has not been met."""
        if self.settled:
            return {name: seat.life for name, seat in self._roll.seats.items()}
        node = self.node
        met = {node.names[index]: life for index, life in node.core.lives.items()}
        met[self._house.me] = self._house.life
        return met if len(met) == len(node.names) else None

    @property
    def settled(self) -> bool:
        """Whether everyone has met the same. Until then somebody may have been a member before, and
        have forgotten it: nothing is carried out."""
        return bool(self._roll.history)

    def heard(self, sender: str, lives: dict[str, str]) -> None:
        """Of a member, whom it has met."""
        self._met[sender] = lives
        everyone = self._roll.seats.keys()
        same = all(self._met.get(name) == lives for name in everyone)
        if same and lives.keys() == everyone and not self.settled:
            self.settle(lives)

    def settle(self, lives: dict[str, str]) -> None:
        self._roll = agreed(self._roll, lives)
        self.begun.set()

    def presence(self) -> Presence:
        """Who was met, and who was not."""
        names, core = self.node.names, self.node.core
        met = {self._house.me, *(names[index] for index in core.lives)}
        here = tuple(name for name in names if name in met)
        return Presence(here, len(names), tuple(name for name in names if name not in met))

    def look_after_newcomers(self) -> None:
        """Nobody waits for those who have yet to come and may be fetching the state."""
        outgoing = self.node.outgoing
        if outgoing.exempt:
            young = asyncio.get_running_loop().time() < self._began + NEWCOMER_S
            yet = (peer.index for peer in self.node.company if young and not peer.connections)
            outgoing.exempt = frozenset(yet)

    def outnumbered(self) -> list[str]:
        """Who is missing, if those who are here are too few to carry anything out."""
        away = [peer.name for peer in self.node.company if not peer.link.open]
        return away if 2 * len(away) >= len(self._roll.seats) else []

    def stuck(self) -> dict[str, str]:
        """The lives of members who are away, and for whom so much is kept that all others wait."""
        if not self.settled:
            return {}
        seats, now = self._roll.seats, asyncio.get_running_loop().time()
        return {
            peer.name: seats[peer.name].life
            for peer in self.node.company
            if peer.suspected
            and not peer.link.open
            and (peer.lost_at is None or peer.broken_s(now) > BACK_WITHIN_S)
            and self.node.outgoing.waits_for(peer.index)
        }

    def others(self) -> list[Address]:
        """Where the other members should be, those first with whom there is a connection."""
        peers = sorted(self.node.company, key=lambda peer: not peer.link.open)
        return [Address.parse(self._roll.seats[peer.name].address) for peer in peers]

    def absent(self) -> list[Address]:
        """Where those should be with whom there is no connection."""
        return [
            Address.parse(self._roll.seats[peer.name].address)
            for peer in self.node.company
            if not peer.link.open
        ]

    def propose(self, message: Change | Met) -> None:
        """To all members, however much is under way: it may be the way out. Once is enough: what
        leads to no other generation here does not do so later either."""
        payload = encode(message)
        if payload not in self._proposed and len(self._proposed) < PROPOSALS_MAX:
            self._proposed.add(payload)
            self.node.outgoing.urgent(payload)

    def hurry(self) -> None:
        """Do not stay for others any longer."""
        self._hurry.set()

    async def end(self) -> None:
        """Stay for a moment, and leave."""
        self.node.retired = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self._hurry.wait()
        await self._stack.aclose()
