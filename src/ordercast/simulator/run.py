"""One simulated run from its plan to its trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ordercast.protocols.messages import Held
from ordercast.protocols.stack import Stack
from ordercast.simulator.plan import Plan, Traffic
from ordercast.simulator.world import Narrator, World
from ordercast.trace.event import Event

__all__ = ["Ending", "simulate"]


@dataclass(frozen=True, slots=True)
class Ending:
    quiesced: bool
    """Did the run come to rest before its time was up, with enough processes to go on?"""
    virtual_us: int
    waiting: tuple[tuple[int, Held], ...]
    """Who still held what when the run ended, and what it was waiting for."""
    held: tuple[tuple[int, Held], ...]
    """The first messages that had to wait, and what for."""
    left: int
    """Processes that did not crash."""
    obstacle: str | None = None
    """Why those who are left owe nobody a delivery, if they do not."""


def simulate(
    plan: Plan,
    *,
    build: Callable[[int, int], Stack],
    run: str,
    write: Callable[[Event], None],
    narrate: Narrator | None = None,
) -> Ending:
    world = World(
        build=build,
        size=plan.size,
        run=run,
        write=write,
        network=plan.network,
        seed=plan.seed,
        narrate=narrate,
        detect_us=plan.detect_us,
    )
    for crash in plan.crashes:
        if crash.at_us is not None:
            world.at(crash.at_us, world.crash, crash.process)
        if crash.after_copies is not None:
            world.crash_after(crash.process, crash.after_copies)
    # Traffic draws from its own stream: another network or protocol meets the same traffic.
    random = Random(f"traffic {plan.seed}")
    for process in range(plan.size):
        _schedule(world, process, plan.traffic, random)
    quiesced = world.run(plan.until_us)
    waiting = tuple(
        (process, held)
        for process, member in enumerate(world.processes)
        if member.up
        for held in member.stack.held()
    )
    left = sum(member.up for member in world.processes)
    return Ending(quiesced, world.now_us, waiting, tuple(world.held), left)


def _schedule(world: World, process: int, traffic: Traffic, random: Random) -> None:
    time_us = 0
    for number in range(1, traffic.messages + 1):
        time_us += random.randint(0, 2 * traffic.interval_us)
        payload = f"p{process} #{number}".encode().ljust(traffic.payload_bytes, b".")
        to = _destinations(world.size, traffic, random)
        world.at(time_us, world.send, process, payload, to)


def _destinations(size: int, traffic: Traffic, random: Random) -> tuple[int, ...] | None:
    if traffic.destinations == "everyone":
        return None
    count = 1 if traffic.destinations == "one" else random.randint(1, size)
    return tuple(sorted(random.sample(range(size), count)))
