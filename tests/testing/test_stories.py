"""Groups in stories: the members of `ordercast.join`, with journals and traces on the disk."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import ordercast
from ordercast.errors import TraceError
from ordercast.testing import Process, World, check, run
from ordercast.trace import Manifest
from ordercast.trace.spans import Span, SpanLog

SENDS = 12
SENDS_TO_ONE = ("synchronous",)
CHOICES: Sequence[tuple[str, str | None]] = [
    ("fifo", "uniform"),
    ("causal", "uniform"),
    ("causal", "reliable"),
    ("causal_matrix", "direct"),
    ("synchronous", None),
    ("total_coordinator", None),
    ("total_lamport", None),
    ("total_skeen", None),
]


class Group:
    """What its members do, and what each of them has seen."""

    def __init__(self, size: int, home: Path, order: str, reliability: str | None) -> None:
        self.home = home
        self.order = order
        self.reliability = reliability
        self.peers = {name: f"127.0.0.1:{7000 + at}" for at, name in enumerate("abcde"[:size])}
        self.delivered: dict[str, list[str]] = {name: [] for name in self.peers}
        self.stable: list[str] = []

    def start(self, world: World, name: str) -> Process:
        return world.start(name, self._member, name, random.Random(world.random.random()))

    async def _member(self, me: str, dice: random.Random) -> None:
        async with (
            ordercast.join(
                "story",
                me=me,
                peers=self.peers,
                order=self.order,
                reliability=self.reliability,
                journal=self.home / me,
                trace=self.home / "trace",
            ) as group,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(self._send(group, dice, tasks))
            async for delivery in group:
                position = len(self.delivered[me]) + 1
                assert delivery.position == position, "one is missing, or came again"
                self.delivered[me].append(delivery.id)

    async def _send(
        self, group: ordercast.Group, dice: random.Random, tasks: asyncio.TaskGroup
    ) -> None:
        others = [name for name in self.peers if name != group.me]
        for _ in range(SENDS):
            to = [dice.choice(others)] if self.order in SENDS_TO_ONE else None
            tasks.create_task(self._note(await group.send(dice.randbytes(dice.randrange(50)), to)))
            await asyncio.sleep(dice.random() / 2)

    async def _note(self, receipt: ordercast.Receipt) -> None:
        await receipt.stable()
        self.stable.append(receipt.id)


async def troubles(world: World, group: Group, for_s: float) -> None:
    """Whatever can befall processes; in the end all are there, and nothing is in the way."""
    dice, names = world.random, list(group.peers)
    members = {name: group.start(world, name) for name in names}
    end = world.now + for_s
    while world.now < end:
        await asyncio.sleep(dice.expovariate(2))
        member = members[dice.choice(names)]
        match dice.choice(["kill", "vanish", "stop", "pause", "cut", "heal", "slow", "quick"]):
            case "kill":
                member.kill()
            case "vanish":
                member.kill(silently=True)
            case "stop":
                await member.stop()
            case "pause":
                member.pause()
                world.loop.call_later(4 * dice.random(), member.resume)
            case "cut":
                some = set(dice.sample(names, dice.randrange(1, len(names))))
                world.cut(some, set(names) - some)
            case "heal":
                world.heal()
            case "slow":
                world.slow_down((0.001, 0.3), loss=0.1)
            case "quick":
                world.slow_down((0.0002, 0.002))
        for name in names:
            if not members[name].running and dice.random() < 0.3:
                members[name] = group.start(world, name)
    world.heal()
    world.slow_down((0.0002, 0.002))
    for name, member in members.items():
        member.resume()
        if not member.running:
            group.start(world, name)
    await asyncio.sleep(60)


@pytest.mark.parametrize("seed", range(16))
def test_whatever_befalls_a_group(tmp_path: Path, seed: int) -> None:
    order, reliability = CHOICES[seed % len(CHOICES)]
    group = Group(2 + seed % 4, tmp_path, order, reliability)
    run(lambda world: troubles(world, group, 10), seed=seed)
    verdicts = check(tmp_path / "trace", rest=True)
    assert {one.property for one in verdicts if one.verdict == "holds"} >= {"agreement", "fifo"}
    assert len(group.stable) > SENDS
    if order not in SENDS_TO_ONE:
        everyone = {frozenset(ids) for ids in group.delivered.values()}
        assert len(everyone) == 1
        assert everyone.pop().issuperset(group.stable)


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
        "import hashlib, pathlib, sys\n"
        "from ordercast.testing import run\n"
        "from tests.testing.test_stories import Group, crash_in_the_middle\n"
        "home, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2])\n"
        "group = Group(3, home, 'causal', None)\n"
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
