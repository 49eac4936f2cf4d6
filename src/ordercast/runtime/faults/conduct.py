"""Makes the faults of a plan happen, each at its time, and says when they really did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from msgspec import Struct

from ordercast.runtime.faults.kinds import (
    Faults,
    Habit,
    Kill,
    Partition,
    Pause,
    Slow,
    Span,
)
from ordercast.runtime.faults.network import Network

__all__ = ["Group", "Happening", "conduct"]


class Happening(Struct, frozen=True):
    """Something that was done to the group, or that it noticed."""

    at_us: int
    """Since the members may send."""
    what: str

    def __str__(self) -> str:
        return f"{self.at_us / 1e6:.3f} s  {self.what}"


class Group(Protocol):
    """The processes that suffer."""

    def note(self, what: str) -> None: ...

    def lives(self, process: int) -> bool: ...

    def kill(self, process: int) -> None: ...

    async def restart(self, process: int) -> bool:
        """Over when it is back, or (False) will not come."""

    def pause(self, process: int, *, on: bool) -> None: ...

    def slow(self, process: int, *, on: bool) -> None: ...


async def conduct(faults: Faults, group: Group, network: Network | None) -> None:
    """Begin now. Over when the last fault that ends has ended. Cancelled, it leaves nobody
    paused and nothing parted."""
    clock = _Clock()
    acts: list[Coroutine[Any, Any, None]] = [
        _suffer(own, group, clock) for own in faults.on_members.values()
    ]
    if network is not None:
        network.begin()
        acts += [_part(partition, group, network, clock) for partition in faults.partitions]
        acts += [_tell(habit, group, clock) for habit in faults.habits if habit.span != Span()]
    try:
        async with asyncio.TaskGroup() as tasks:
            for act in acts:
                tasks.create_task(act)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None


class _Clock:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._zero = self._loop.time()

    async def until(self, at_us: int) -> None:
        await asyncio.sleep(self._zero + at_us / 1e6 - self._loop.time())


async def _suffer(own: list[Kill | Pause | Slow], group: Group, clock: _Clock) -> None:
    """What happens to one process, one after the other: it may take longer than planned to come
    back, and has to be there to suffer again."""
    for fault in own:
        await clock.until(fault.span.start_us)
        if not group.lives(fault.process):
            group.note(f"p{fault.process} is gone already: no {fault}")
        elif isinstance(fault, Kill):
            await _kill(fault, group)
        elif isinstance(fault, Pause):
            await _hold(fault, group, group.pause, "paused", "goes on")
        else:
            await _hold(fault, group, group.slow, "reads no more", "reads again")


async def _kill(fault: Kill, group: Group) -> None:
    group.kill(fault.process)
    group.note(f"p{fault.process} killed")
    if fault.span.length_us is not None:
        await asyncio.sleep(fault.span.length_us / 1e6)
        back = await group.restart(fault.process)
        group.note(f"p{fault.process} {'back' if back else 'did not come back'}")


async def _hold(
    fault: Pause | Slow, group: Group, switch: Callable[..., None], begins: str, ends: str
) -> None:
    switch(fault.process, on=True)
    group.note(f"p{fault.process} {begins}")
    try:
        assert fault.span.length_us is not None
        await asyncio.sleep(fault.span.length_us / 1e6)
    finally:
        switch(fault.process, on=False)
    group.note(f"p{fault.process} {ends}")


async def _part(partition: Partition, group: Group, network: Network, clock: _Clock) -> None:
    sides = " | ".join(", ".join(map(str, side)) for side in partition.sides)
    await clock.until(partition.span.start_us)
    network.part(partition)
    group.note(f"{sides} parted")
    try:
        assert partition.span.length_us is not None
        await asyncio.sleep(partition.span.length_us / 1e6)
    finally:
        network.heal(partition)
    group.note(f"{sides} healed")


async def _tell(habit: Habit, group: Group, clock: _Clock) -> None:
    """Delays and losses come and go by themselves."""
    await clock.until(habit.span.start_us)
    group.note(f"{habit} begins")
    if habit.span.end_us is not None:
        await clock.until(habit.span.end_us)
        group.note(f"{habit} ends")
