"""A member in one generation: a group that does not change, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from ordercast.protocols import catalog
from ordercast.replica.commands import encode
from ordercast.replica.keeping import Keeping
from ordercast.replica.rolls import Change, charter, seated
from ordercast.runtime.discovery import Address
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
        # A checkpoint for each segment: where the last one is, the journal always reaches back to.
        keep_bytes = max(settings.keep_bytes, 2 * settings.segment_bytes)
        # Nobody is given up: whoever is waited for in vain is left behind, and may come back.
        self.settings = replace(settings, keep_bytes=keep_bytes, dead_after_s=None)
        self.trace = trace
        self.check_private = check_private


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

    @classmethod
    async def begin(cls, house: House, roll: Roll, *, position: int) -> Generation:
        """Take one's seat. What comes after `position` is delivered, and perhaps some before."""
        door, keeping = house.door, house.keeping
        names, seats = tuple(roll.seats), list(roll.seats.values())
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
            node.dial({place: Address.parse(seat.address) for place, seat in enumerate(seats)})
            generation = cls(house, roll, node, recovered=recovered)
            generation._stack = stack.pop_all()
        members = ", ".join(names)
        text = f"generation {roll.generation} of {door.group!r}: {members}"
        logger.info("%s: %s", house.me, text, extra=about("generation", house.me))
        return generation

    @property
    def number(self) -> int:
        return self._roll.generation

    @property
    def roll(self) -> Roll:
        """With the lives of all who were met."""
        node = self.node
        lives = {node.names[index]: life for index, life in node.core.lives.items()}
        return seated(self._roll, lives | {self._house.me: self._house.life})

    @property
    def lives(self) -> dict[str, str] | None:
        """Of everyone; None as long as somebody has not been met."""
        lives = {name: seat.life for name, seat in self.roll.seats.items()}
        return lives if all(lives.values()) else None

    def stuck(self) -> dict[str, str]:
        """The lives of members who are away, and for whom so much is kept that all others wait."""
        lives = self.lives or {}
        return {
            peer.name: lives[peer.name]
            for peer in self.node.company
            if peer.suspected
            and not peer.link.open
            and peer.name in lives
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

    def propose(self, change: Change) -> None:
        """To all members, however much is under way: it may be the way out."""
        self.node.outgoing.urgent(encode(change))

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
