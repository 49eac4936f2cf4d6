"""Groups in stories: the members of `ordercast.join`, with journals and traces on the disk."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ordercast
from ordercast.errors import TraceError
from ordercast.testing import World, check, run
from ordercast.trace import Manifest
from ordercast.trace.span_log import SpanLog
from ordercast.trace.spans import Span

from .stories import CHOICES, Group, play


@pytest.mark.parametrize("seed", range(2 * len(CHOICES)))
def test_whatever_befalls_a_group(tmp_path: Path, seed: int) -> None:
    played = play(seed, tmp_path)
    assert played.delivered >= played.stable > 0


async def crash_in_the_middle(world: World, group: Group) -> dict[str, list[str]]:
    members = {name: group.start(world, name) for name in group.peers}
    await asyncio.sleep(1)
    members["b"].kill()
    await asyncio.sleep(5)
    group.start(world, "b")
    await asyncio.sleep(30)
    return group.delivered


def test_the_same_seed_tells_the_same_story(tmp_path: Path) -> None:
    """Whatever Python's hashes are in each process: so what fails there, fails here again."""
    program = (
        "import hashlib, msgspec, pathlib, sys\n"
        "from ordercast.testing import run\n"
        "from tests.testing.stories import Group, plan_of\n"
        "from tests.testing.test_stories import crash_in_the_middle\n"
        "home, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2])\n"
        "group = Group(msgspec.structs.replace(plan_of(2), journal=True, size=3), home)\n"
        "told = repr(run(lambda world: crash_in_the_middle(world, group), seed=seed))\n"
        "logs = b''.join(path.read_bytes() for path in sorted((home / 'trace').iterdir()))\n"
        "print(hashlib.sha256(told.encode() + logs).hexdigest())\n"
    )

    def told(place: str, seed: int, hashes: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / place), str(seed)],
            env=os.environ | {"PYTHONHASHSEED": hashes},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    first, again, another = told("x", 1, "1"), told("y", 1, "2"), told("z", 2, "1")
    assert first == again != another


def test_broken_order_is_found(tmp_path: Path) -> None:
    """By hand, since no member would write such a log."""
    manifest = Manifest("r", ("a", "b"), order="fifo", extra={"promises": ["fifo"]})
    log = {name: SpanLog(tmp_path, name, run="r", process=at, manifest=manifest)
           for at, name in enumerate("ab")}  # fmt: skip
    log["a"].write([Span("send", 1, 0, 1, 2, 0, None, None)])
    log["b"].write([Span("deliver", 2, 0, 2, 1), Span("deliver", 3, 0, 1, 1)])
    for one in log.values():
        one.close()
    with pytest.raises(AssertionError, match=r"fifo is violated: .*0:2"):
        check(tmp_path)
    with pytest.raises(TraceError, match="no member has written a log here"):
        check(tmp_path / "nowhere")


def test_a_member_for_whom_nobody_came_says_so() -> None:
    async def alone() -> None:
        peers = {"a": "127.0.0.1:7000", "b": "127.0.0.1:7001"}
        async with ordercast.join("g", me="a", peers=peers, timeout_s=300):
            pass

    async def story(world: World) -> float:
        with pytest.raises(ordercast.DiscoveryError, match="after 300 s there is no connection"):
            await world.start("a", alone)
        return world.now

    assert 300 <= run(story) < 301


def test_a_member_without_a_journal_is_given_up(tmp_path: Path) -> None:
    peers = {name: f"127.0.0.{at}:7000" for at, name in enumerate("abc", 1)}
    dead: list[tuple[str, ...]] = []

    async def member(me: str, for_s: float) -> None:
        async with ordercast.join("g", me=me, peers=peers, trace=tmp_path) as group:
            for _ in range(2):
                await group.send(me.encode())
                await asyncio.sleep(for_s / 2)
                dead.append(group.view.dead)

    async def story(world: World) -> None:
        members = {me: world.start(me, member, me, 120) for me in peers}
        await asyncio.sleep(59)
        members["c"].kill(silently=True)
        await members["a"]
        await members["b"]

    run(story)
    assert dead == [(), (), ("c",), ("c",)]
    check(tmp_path, rest=True, crashed=["c"])
    with pytest.raises(AssertionError, match="agreement is violated: p2 never delivered"):
        check(tmp_path, rest=True)


def test_nobody_is_blamed_for_what_another_holds_up() -> None:
    """Total order needs everyone: when one of them is killed, nothing is delivered any more, and
    nobody but that one is given up."""
    peers = {name: f"127.0.0.1:{port}" for port, name in enumerate("abc", 7001)}
    groups: dict[str, ordercast.Group] = {}

    async def member(me: str) -> None:
        settings = ordercast.Settings(window_bytes=2000)
        async with (
            ordercast.join(
                "g", me=me, peers=peers, order="total_skeen", settings=settings
            ) as group,
            asyncio.TaskGroup() as tasks,
        ):

            async def send() -> None:
                while True:
                    await group.send(bytes(300))
                    await asyncio.sleep(0.1)

            groups[me] = group
            tasks.create_task(send())
            async for _ in group:
                pass

    async def story(world: World) -> list[tuple[str, ...]]:
        members = {me: world.start(me, member, me) for me in peers}
        await asyncio.sleep(5)
        members["c"].kill()
        await asyncio.sleep(300)
        assert all(groups[me].why_held() for me in "ab")
        return [groups[me].view.dead for me in "ab"]

    assert run(story) == [("c",), ("c",)]


@pytest.mark.parametrize("how", ["via:127.0.0.1:7001?size=3", "registry:{home}?size=3"])
def test_members_find_each_other(tmp_path: Path, how: str) -> None:
    """Though they come one after the other, and listen wherever there is room."""

    async def member(me: str) -> list[str]:
        where = "127.0.0.1:7001" if me == "a" else "127.0.0.1"
        peers = how.format(home=tmp_path)
        async with ordercast.join("g", me=me, peers=peers, listen=where) as group:
            await group.send(me.encode())
            found = [(await anext(group)).id for _ in range(3)]
            await asyncio.sleep(5)
            return sorted(found)

    async def story(world: World) -> list[list[str]]:
        members = []
        for me in "cab":
            members.append(world.start(me, member, me))
            await asyncio.sleep(7)
        return [await one for one in members]

    assert run(story) == [["a:1", "b:1", "c:1"]] * 3
