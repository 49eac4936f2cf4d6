"""Random stories of replicas: whatever a seed says befalls them, they stay in step.

    python -m tests.replica.stories 0 1000

plays a thousand of them, and names the seeds that fail. Every replica, in every life, carries out
the same commands in the same order: what the first one does at a place, all others have to do
there. What was acknowledged is there, at the place that was told, and once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

from msgspec import Struct

import ordercast
from ordercast.testing import Process, World, run

__all__ = ["Cluster", "History", "Plan", "plan_of", "play"]

NAMES = "abcdefg"
REST_S = 60
GIVEN_MAX = 2000
ILLS = (
    ("kill",),
    ("add", "remove"),
    ("kill", "add", "remove"),
    ("cut", "heal", "heal", "add"),
    ("hub", "heal", "heal", "kill", "add"),
    ("wipe", "kill", "hub", "heal", "add"),
    ("kill", "vanish", "stop", "pause", "cut", "heal", "slow", "quick", "break", "add", "remove"),
    ("kill", "wipe", "pause", "hub", "heal", "slow", "quick", "break", "add", "remove"),
)


class Plan(Struct, frozen=True):
    founders: int
    journal: bool
    sync: Literal["write", "disk"]
    pause_s: float
    bytes_max: int
    ills: tuple[str, ...]
    often: float
    for_s: float
    settings: ordercast.Settings


def plan_of(seed: int) -> Plan:
    dice = random.Random(f"replicas {seed}")
    journal = dice.random() < 0.7
    usual = ordercast.Settings()
    ills = dice.choice(ILLS)
    if not journal or "wipe" in ills:  # whoever is removed has no word for those who forget
        ills = tuple(ill for ill in ills if ill != "remove")
    # Nobody can tell a founder that is alone, and has forgotten, from one that begins.
    founders = [1, 2, 3, 3, 3, 5] if journal and "wipe" not in ills else [3, 3, 5]
    return Plan(
        founders=dice.choice(founders),
        journal=journal,
        sync=dice.choice(["write", "disk"]),
        pause_s=dice.choice([0.03, 0.1, 0.5]),
        bytes_max=dice.choice([10, 2000]),
        ills=ills,
        often=dice.choice([0.3, 1, 4]),
        for_s=dice.choice([5, 15]),
        settings=ordercast.Settings(
            segment_bytes=dice.choice([usual.segment_bytes, 10_000, 50_000]),
            # With little room, whoever is away is soon left behind.
            window_bytes=2**24 if not journal or "wipe" in ills else dice.choice([2**22, 2000]),
        ),
    )


class History:
    """A machine whose state is all that was ever done."""

    def __init__(self, cluster: Cluster) -> None:
        self.items: list[str] = []
        self._cluster = cluster

    def apply(self, command: bytes, sender: str) -> int:
        item = command.decode()
        if item.startswith("refuse"):
            raise ValueError(item)
        self.items.append(item)
        self._cluster.done(len(self.items) - 1, item)
        return len(self.items) - 1

    def save(self) -> bytes:
        return json.dumps(self.items).encode()

    def load(self, state: bytes) -> None:
        self.items = json.loads(state)
        for place, item in enumerate(self.items):
            self._cluster.done(place, item)


class Cluster:
    """What its replicas do, and what they have seen."""

    def __init__(self, plan: Plan, home: Path) -> None:
        self.plan = plan
        self.home = home
        self.addresses = {name: f"127.0.0.1:{7000 + at}" for at, name in enumerate(NAMES)}
        self.truth: list[str] = []
        self.told: dict[str, int] = {}
        self.replicas: dict[str, ordercast.Replica] = {}
        """Those that were let in and have not ended."""
        self.machines: dict[str, History] = {}
        self.removed: set[str] = set()
        self.unwanted: set[str] = set()
        """Whom somebody wanted to remove."""
        self.generations: dict[int, tuple[str, ...]] = {}
        self.unknown = 0
        self.never: set[str] = set()
        """Commands of which their givers were told that they are not carried out."""
        self.refused: list[str] = []
        self.calm = False
        """Nobody gives commands any more."""
        self._given = 0

    def done(self, place: int, item: str) -> None:
        if place == len(self.truth):
            assert item not in self.told, f"{item} was done at {self.told[item]}, and now again"
            self.truth.append(item)
        found = self.truth[place] if place < len(self.truth) else None
        assert found == item, f"at place {place} somebody has done {found}, and another {item}"

    def start(self, world: World, name: str) -> Process:
        founders = {n: self.addresses[n] for n in NAMES[: self.plan.founders]}
        dice = random.Random(world.random.random())
        return world.start(name, self._replica, name, dice, founders)

    async def _replica(self, me: str, dice: random.Random, founders: dict[str, str]) -> None:
        plan = self.plan
        machine = History(self)
        others = [at for name, at in self.addresses.items() if name != me]
        journal = self.home / me
        known = me in founders and me not in self.removed
        try:
            async with ordercast.replicate(
                "story",
                machine,
                me=me,
                peers=founders if known else None,
                via=None if known else others,
                listen=self.addresses[me],
                journal=journal if plan.journal else None,
                sync=plan.sync if plan.journal else "write",
                on_change=lambda members: self._changed(me, members),
                timeout_s=30,
                settings=plan.settings,
            ) as replica:
                self.replicas[me], self.machines[me] = replica, machine
                giving = asyncio.create_task(self._give(replica, dice))
                try:
                    await replica.ended()
                finally:
                    giving.cancel()
        except ordercast.RemovedError:
            assert me in self.unwanted, f"{me} is no member any more, and nobody has removed it"
            self.removed.add(me)
            shutil.rmtree(journal, ignore_errors=True)
        except ordercast.DiscoveryError:
            pass  # it was not let in in time
        finally:
            self.replicas.pop(me, None)

    async def _give(self, replica: ordercast.Replica, dice: random.Random) -> None:
        async with asyncio.TaskGroup() as tasks:
            while not self.calm and self._given < GIVEN_MAX:
                await asyncio.sleep(2 * dice.random() * self.plan.pause_s)
                for _ in range(dice.choice([1, 1, 5])):
                    self._given += 1
                    word = "refuse" if dice.random() < 0.05 else "do"
                    item = f"{word} {replica.me}/{self._given} "
                    item += "." * dice.choice([0, self.plan.bytes_max])
                    tasks.create_task(self._do(replica, item))

    async def _do(self, replica: ordercast.Replica, item: str) -> None:
        try:
            place = await replica.do(item.encode())
        except ValueError as error:
            self.refused.append(str(error))
        except ordercast.RemovedError:
            self.never.add(item)
        except ordercast.OutcomeUnknownError:
            self.unknown += 1
        else:
            assert self.truth[place] == item
            self.told[item] = place

    def _changed(self, me: str, members: tuple[str, ...]) -> None:
        replica = self.replicas.get(me)
        if replica is not None:
            known = self.generations.setdefault(replica.generation, members)
            assert known == members, f"a generation of {known} is one of {members} to {me}"


async def troubles(world: World, cluster: Cluster) -> None:
    dice, plan = world.random, cluster.plan
    processes = {name: cluster.start(world, name) for name in NAMES[: plan.founders]}
    await asyncio.sleep(0.3 + dice.random())
    end = world.now + plan.for_s
    while world.now < end:
        await asyncio.sleep(dice.expovariate(plan.often))
        await _befalls(world, cluster, processes, dice.choice(plan.ills))
        for name, process in processes.items():
            if not process.running and dice.random() < 0.4:
                processes[name] = cluster.start(world, name)
    cluster.calm = True
    world.heal()
    world.slow_down((0.0002, 0.002))
    for _ in range(3):  # whoever was removed meanwhile, or not let in in time, comes again
        for name, process in processes.items():
            process.resume()
            if not process.running:
                processes[name] = cluster.start(world, name)
        await asyncio.sleep(REST_S / 3)


async def _befalls(world: World, cluster: Cluster, processes: dict[str, Process], ill: str) -> None:
    dice, names = world.random, list(processes)
    name = dice.choice(names)
    match ill:
        case "kill" | "vanish" | "stop" | "wipe":
            forgets = ill == "wipe" or not cluster.plan.journal
            if forgets and not all_in(cluster, processes):
                return  # only a minority may forget at a time
            if ill == "stop":
                with contextlib.suppress(asyncio.CancelledError):
                    await processes[name].stop()
            else:
                processes[name].kill(silently=ill == "vanish")
                if ill == "wipe":
                    shutil.rmtree(cluster.home / name, ignore_errors=True)
            cluster.replicas.pop(name, None)
        case "pause":
            processes[name].pause()
            world.loop.call_later(3 * dice.random(), processes[name].resume)
        case "break":
            for transport in list(processes[name].transports):
                if dice.random() < 0.5:
                    transport.abort()
        case "cut":
            some = set(dice.sample(names, dice.randrange(1, len(names)))) if names[1:] else set()
            if some:
                world.cut(some, set(names) - some)
                world.loop.call_later(8 * dice.random(), world.heal)
        case "hub" if len(names) > 2:  # all but one see that one alone
            world.cut(*([each] for each in names if each != name))
            world.loop.call_later(8 * dice.random(), world.heal)
        case "heal":
            world.heal()
        case "slow":
            world.slow_down((0.0001, dice.choice([0.05, 0.3])), loss=dice.choice([0, 0.1]))
        case "quick":
            world.slow_down((0.0002, 0.002))
        case "add":
            new = [n for n in NAMES if n not in processes]
            if new:
                processes[new[0]] = cluster.start(world, new[0])
        case "remove":
            replica = cluster.replicas.get(name)
            if replica is not None and len(replica.members) > 2:
                other = dice.choice(replica.members)
                cluster.unwanted.add(other)
                remove = replica.leave() if other == name else replica.remove(other)
                asking = processes[name].context.run(asyncio.ensure_future, remove)
                asking.add_done_callback(lambda done: done.cancelled() or done.exception())


def all_in(cluster: Cluster, processes: dict[str, Process]) -> bool:
    """Is everyone who has a seat there, and does everyone agree on that?"""
    views = [replica.view for replica in cluster.replicas.values()]
    return (
        len(views) == len(processes) >= 3
        and all(process.running for process in processes.values())
        and all(set(view.present) == set(view.members) == set(processes) for view in views)
    )


def play(seed: int, home: Path) -> Cluster:
    plan = plan_of(seed)
    cluster = Cluster(plan, home)

    async def story(world: World) -> None:
        await troubles(world, cluster)
        last = max(cluster.replicas.values(), key=lambda replica: replica.generation)
        for name in last.members:
            assert name in cluster.replicas, f"{name} has a seat, and is not there"
            replica, machine = cluster.replicas[name], cluster.machines[name]
            assert replica.generation == last.generation, f"{name} is in {replica.generation}"
            assert machine.items == cluster.truth, f"{name} has {len(machine.items)} of it"

    run(story, seed=seed)
    assert len(set(cluster.truth)) == len(cluster.truth), "something was done twice"
    for item, place in cluster.told.items():
        assert cluster.truth[place] == item
    both = cluster.never.intersection(cluster.truth)
    assert not both, f"{sorted(both)} were done, and their givers told that they are not"
    return cluster


def main(first: int, last: int) -> int:
    logging.disable(logging.CRITICAL)
    began, failed, done, generations, unknown = time.monotonic(), 0, 0, 0, 0
    for seed in range(first, last):
        with tempfile.TemporaryDirectory() as home:
            try:
                cluster = play(seed, Path(home))
                done += len(cluster.truth)
                generations += max(cluster.generations, default=1)
                unknown += cluster.unknown
            except Exception as error:
                failed += 1
                print(f"seed {seed}: {type(error).__name__}: {error}; {plan_of(seed)}", flush=True)
        if (count := seed + 1 - first) % 50 == 0:
            print(f"{count} of {last - first}, {time.monotonic() - began:.0f} s", flush=True)
    print(
        f"{last - first} stories, {done} commands, {generations} generations, "
        f"{unknown} outcomes unknown, {failed} stories failed"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
