"""Members may be ready for different amounts under way: whoever sends says when it wants to hear.

In virtual time: whoever waits for room in vain would wait for ever.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import ordercast
from ordercast.testing import World, run

PEERS = {name: f"127.0.0.1:{7000 + at}" for at, name in enumerate("abc")}
LITTLE = ordercast.Settings(window_bytes=2**16)


async def member(
    me: str, send: int, home: Path | None, settings: ordercast.Settings | None, taken: list[str]
) -> None:
    """Sends so many messages, takes all there are, and takes its time over each."""
    journal = home / me if home is not None else None
    async with ordercast.join("g", me=me, peers=PEERS, journal=journal, settings=settings) as group:

        async def take() -> None:
            async for delivery in group:
                taken.append(f"{me} {delivery.id}")
                await asyncio.sleep(0.002)

        taking = asyncio.create_task(take())
        for _ in range(send):
            await group.send(bytes(10_000))
        await taking


def test_a_small_window_among_large_ones() -> None:
    taken: list[str] = []

    async def story(world: World) -> None:
        members = [
            world.start(me, member, me, 200, None, LITTLE if me == "a" else None, taken)
            for me in PEERS
        ]
        await asyncio.sleep(60)  # for longer than those are waited for that take nothing
        assert all(each.running for each in members)
        assert len(taken) == len(set(taken)) == 3 * 600
        for each in members:
            each.kill()

    run(story)


def test_one_that_comes_back_with_a_smaller_window(tmp_path: Path) -> None:
    """The others have taken what fills it, and had no reason to say so."""
    taken: list[str] = []

    async def story(world: World) -> None:
        members = [
            world.start(me, member, me, 50 if me == "a" else 0, tmp_path, None, taken)
            for me in PEERS
        ]
        await asyncio.sleep(10)
        assert len(taken) == 3 * 50
        members[0].kill()
        members[0] = world.start("a", member, "a", 50, tmp_path, LITTLE, taken)
        await asyncio.sleep(10)
        assert len(taken) == len(set(taken)) == 3 * 100
        for each in members:
            each.kill()

    run(story)
