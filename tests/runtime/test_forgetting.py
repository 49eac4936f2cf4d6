"""A member whose journal went back in time is told so, and never contradicts itself."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

import ordercast
from ordercast.testing import World, run

PEERS = {name: f"127.0.0.1:{port}" for port, name in enumerate("abc", 7001)}


class Story:
    """Three members with journals, of which one comes back with an older one."""

    def __init__(self, world: World, home: Path, forgetful: str) -> None:
        self.world = world
        self.home = home
        self.who = forgetful
        self.groups: dict[str, ordercast.Group] = {}
        self.heard: dict[str, list[tuple[str, bytes]]] = {name: [] for name in PEERS}
        self.ended: dict[str, str] = {}

    async def member(self, me: str) -> None:
        try:
            async with ordercast.join(
                "g", me=me, peers=PEERS, journal=self.home / me, order="fifo", reliability="uniform"
            ) as group:
                self.groups[me] = group
                async for delivery in group:
                    self.heard[me].append((str(delivery.id), delivery.payload))
        except ordercast.OrdercastError as error:
            self.ended[me] = str(error)

    async def go_back_in_time(self, *, waiting_s: float) -> None:
        """What it sent is stable, and its own disk has none of it."""
        mine, copy = self.home / self.who, self.home / "copy"
        members = {name: self.world.start(name, self.member, name) for name in PEERS}
        while len(self.groups) < len(PEERS):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        shutil.copytree(mine, copy)
        await (await self.groups[self.who].send(b"Ann")).stable()
        await asyncio.sleep(waiting_s)
        members[self.who].kill(silently=True)
        shutil.rmtree(mine)
        copy.rename(mine)
        await asyncio.sleep(1)
        del self.groups[self.who]
        self.world.start(self.who, self.member, self.who)


@pytest.mark.parametrize("forgetful", PEERS)
@pytest.mark.parametrize("waiting_s", [0.0, 0.1])
def test_it_is_told_and_ends_before_anything_is_stable(
    forgetful: str, waiting_s: float, tmp_path: Path
) -> None:
    async def tell(world: World) -> None:
        story = Story(world, tmp_path, forgetful)
        await story.go_back_in_time(waiting_s=waiting_s)
        while not {forgetful} & (story.groups.keys() | story.ended.keys()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        if forgetful in story.groups:
            with pytest.raises((ordercast.OrdercastError, TimeoutError)):
                async with asyncio.timeout(30):
                    await (await story.groups[forgetful].send(b"Bob")).stable()
        others = [name for name in PEERS if name != forgetful]
        # They go on without it.
        await (await story.groups[others[0]].send(b"Eve")).stable()
        await asyncio.sleep(20)
        assert "has forgotten what it did last" in story.ended[forgetful]
        for name in others:
            assert [payload for _, payload in story.heard[name]] == [b"Ann", b"Eve"]

    run(tell, seed=1)
