"""Random stories of a group: whatever a seed says befalls its members, and nothing may be lost.

    python -m tests.testing.stories 0 1000

plays a thousand of them, and names the seeds that fail.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

import ordercast
from ordercast.testing import Process, World, check, run

__all__ = ["CHOICES", "Group", "Plan", "Played", "plan_of", "play"]

CHOICES: tuple[tuple[str, str | None], ...] = (
    ("fifo", "uniform"),
    ("fifo", "reliable"),
    ("causal", "uniform"),
    ("causal", "gossip"),
    ("causal", "majority"),
    ("causal_history", "relay"),
    ("causal_matrix", "direct"),
    ("causal_coordinator", None),
    ("synchronous", None),
    ("total_coordinator", None),
    ("total_lamport", None),
    ("total_skeen", None),
    ("total", "uniform"),
    ("unordered", "uniform"),
)
ILLS = (
    ("kill",),
    ("break", "slow", "quick"),
    ("pause", "cut", "heal", "heal"),
    ("break", "break", "kill", "cut", "heal"),
    ("kill", "vanish", "stop", "pause", "cut", "heal", "slow", "quick", "break"),
)
UNIFORM = ("uniform", "majority")
RELIABLE = (*UNIFORM, "reliable", "relay", "gossip")
REST_S = 100


class Plan(Struct, frozen=True):
    """What a story is to be."""

    order: str
    reliability: str | None
    size: int
    journal: bool
    sync: Literal["write", "disk"]
    sends: int
    pause_s: float
    """Between two sends, on the average twice."""
    bytes_max: int
    slow_s: float
    """How long an application dawdles now and then."""
    ills: tuple[str, ...]
    often: float
    """How many of them befall the group in a second."""
    for_s: float
    settings: ordercast.Settings

    @property
    def to_one(self) -> bool:
        return self.order == "synchronous"


class Played(Struct):
    plan: Plan
    delivered: int
    stable: int


def plan_of(seed: int) -> Plan:
    dice = random.Random(f"plan {seed}")
    order, reliability = CHOICES[seed % len(CHOICES)]
    usual = ordercast.Settings()
    return Plan(
        order=order,
        reliability=reliability,
        size=dice.choice([2, 3, 3, 4, 5]),
        journal=dice.random() < 0.7,
        sync=dice.choice(["write", "disk"]),
        sends=dice.choice([5, 15, 30]),
        pause_s=dice.choice([0.01, 0.3, 0.6]),
        bytes_max=dice.choice([100, 5000]),
        slow_s=dice.choice([0, 0, 0.5]),
        ills=dice.choice(ILLS),
        often=dice.choice([0.5, 2, 8]),
        for_s=dice.choice([3, 10]),
        settings=ordercast.Settings(
            segment_bytes=dice.choice([usual.segment_bytes, 5000, 50_000]),
            window_bytes=dice.choice([usual.window_bytes, usual.window_bytes, 2000, 20_000]),
            keep_bytes=dice.choice([usual.keep_bytes, 0]),
        ),
    )


class Group:
    """What its members do, and what each of them has seen."""

    def __init__(self, plan: Plan, home: Path) -> None:
        self.plan = plan
        self.home = home
        self.peers = {
            name: f"127.0.0.1:{7000 + at}" for at, name in enumerate("abcde"[: plan.size])
        }
        self.delivered: dict[str, list[str]] = {name: [] for name in self.peers}
        self.stable: list[str] = []

    def start(self, world: World, name: str) -> Process:
        return world.start(name, self._member, name, random.Random(world.random.random()))

    async def _member(self, me: str, dice: random.Random) -> None:
        plan = self.plan
        async with (
            ordercast.join(
                "story",
                me=me,
                peers=self.peers,
                order=plan.order,
                reliability=plan.reliability,
                journal=self.home / me if plan.journal else None,
                sync=plan.sync if plan.journal else "write",
                trace=self.home / "trace",
                settings=plan.settings,
            ) as group,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(self._send(group, dice, tasks))
            while await self._receive(group, dice):
                if dice.random() < 0.1:
                    await asyncio.sleep(plan.slow_s)

    async def _send(
        self, group: ordercast.Group, dice: random.Random, tasks: asyncio.TaskGroup
    ) -> None:
        plan = self.plan
        others = [name for name in self.peers if name != group.me]
        for _ in range(plan.sends):
            to = [dice.choice(others)] if plan.to_one else None
            many = [
                bytes(dice.choice([0, 3, plan.bytes_max])) for _ in range(dice.choice([1, 1, 9]))
            ]
            if len(many) == 1:
                one = await group.send(many[0], to)
                tasks.create_task(self._note(one, [one]))
            else:
                all_of_them = await group.send_many(many, to)
                tasks.create_task(self._note(all_of_them, all_of_them))
            await asyncio.sleep(dice.random() * plan.pause_s)

    async def _note(
        self, receipt: ordercast.Receipt | ordercast.Receipts, each: Iterable[ordercast.Receipt]
    ) -> None:
        await receipt.stable()
        self.stable += [one.id for one in each]

    async def _receive(self, group: ordercast.Group, dice: random.Random) -> bool:
        """Some, in one of the two ways; false at the end."""
        if dice.random() < 0.5:
            async for batch in group.batches():
                self._took(group.me, batch)
                return True
            return False
        left = dice.randrange(1, 20)
        async for delivery in group:
            self._took(group.me, [delivery])
            left -= 1
            if not left:
                return True
        return False

    def _took(self, me: str, deliveries: Iterable[ordercast.Delivery]) -> None:
        for delivery in deliveries:
            place = len(self.delivered[me]) + 1
            assert delivery.position == place, (
                f"{me} got position {delivery.position} after {place - 1}"
            )
            self.delivered[me].append(delivery.id)


async def troubles(world: World, group: Group) -> set[str]:
    """Whatever the plan says befalls the members; then everyone is there, and nothing in the way,
    for long enough. Returns who is gone for good: at most a minority, and only without journals."""
    dice, names, plan = world.random, list(group.peers), group.plan
    members = {name: group.start(world, name) for name in names}
    gone: set[str] = set()
    await asyncio.sleep(0.2 + dice.random() / 2)
    end = world.now + plan.for_s
    while world.now < end:
        await asyncio.sleep(dice.expovariate(plan.often))
        name, ill = dice.choice(names), dice.choice(plan.ills)
        if ill in ("kill", "vanish", "stop") and not plan.journal:
            if ill == "stop" or len(gone | {name}) > (len(names) - 1) // 2:
                continue
            gone.add(name)
        await _befalls(world, members[name], ill, names)
        for name in names:
            if not members[name].running and name not in gone and dice.random() < 0.4:
                members[name] = group.start(world, name)
    world.heal()
    world.slow_down((0.0002, 0.002))
    for name, member in members.items():
        member.resume()
        if not member.running and name not in gone:
            group.start(world, name)
    await asyncio.sleep(REST_S)
    return gone


async def _befalls(world: World, member: Process, ill: str, names: list[str]) -> None:
    dice = world.random
    match ill:
        case "kill" | "vanish":
            member.kill(silently=ill == "vanish")
        case "stop":
            await member.stop()
        case "pause":
            member.pause()
            world.loop.call_later(3 * dice.random(), member.resume)
        case "break":
            for transport in list(member.transports):
                if dice.random() < 0.5:
                    transport.abort()
        case "cut":
            some = set(dice.sample(names, dice.randrange(1, len(names))))
            world.cut(some, set(names) - some)
            # Nobody without a journal comes back from having been given up.
            world.loop.call_later(8 * dice.random(), world.heal)
        case "heal":
            world.heal()
        case "slow":
            world.slow_down((0.0001, dice.choice([0.05, 0.5])), loss=dice.choice([0, 0.1]))
        case "quick":
            world.slow_down((0.0002, 0.002))


def play(seed: int, home: Path) -> Played:
    """AssertionError, or whatever error was seen first, if anything is not as it should be."""
    plan = plan_of(seed)
    group = Group(plan, home)
    gone = run(lambda world: troubles(world, group), seed=seed)
    living = [set(ids) for name, ids in group.delivered.items() if name not in gone]
    delivered = sum(map(len, group.delivered.values()))
    check(home / "trace", rest=True, crashed=gone)
    if not plan.to_one and (plan.reliability in RELIABLE or not gone):
        for ids in living:
            assert ids == living[0], "members that are there have not delivered the same"
        if plan.journal or plan.reliability in UNIFORM:
            lost = sorted(set(group.stable) - living[0])
            assert not lost, f"these were stable, and are lost: {lost[:5]}"
    return Played(plan, delivered, len(group.stable))


def main(first: int, last: int) -> int:
    logging.disable(logging.CRITICAL)
    began, failed, delivered = time.monotonic(), 0, 0
    for seed in range(first, last):
        with tempfile.TemporaryDirectory() as home:
            try:
                delivered += play(seed, Path(home)).delivered
            except Exception as error:
                failed += 1
                print(f"seed {seed}: {type(error).__name__}: {error}; {plan_of(seed)}", flush=True)
        if (done := seed + 1 - first) % 50 == 0:
            print(f"{done} of {last - first} stories, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{last - first} stories, {delivered} deliveries, {failed} stories failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
