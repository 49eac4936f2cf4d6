"""A live group in somebody's hands: what may be done to it, and what there is to see.

What is done is done as the faults of a plan are, and noted with them. An act that makes no sense
now gets a `UsageError` with a sentence for whoever wanted it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from ordercast.errors import UsageError
from ordercast.runtime.control import Moment, Sample
from ordercast.runtime.faults import Network
from ordercast.runtime.faults.kinds import Partition, Span
from ordercast.runtime.looks import Audience, Ill, Look, MemberLook, State, Trouble, look_at

if TYPE_CHECKING:
    from ordercast.runtime.crew import Crew

__all__ = ["ACTS", "GROUP_ACTS", "Hands"]

LOOK_S = 0.1
TROUBLES_KEPT = 100
MOMENTS_KEPT = 20_000
"""If nobody could look for a while, the oldest are forgotten."""

ACTS = ("pause", "resume", "cut", "reconnect", "kill", "restart")
"""Done to one member."""
GROUP_ACTS = ("heal", "finish", "heal_and_finish")


class Hands:
    def __init__(self, crew: Crew, network: Network, audience: Audience) -> None:
        self._crew = crew
        self._network = network
        self._audience = audience
        self._samples: dict[int, Sample] = {}
        self._moments: deque[tuple[int, Moment]] = deque(maxlen=MOMENTS_KEPT)
        self._troubles: dict[tuple[int, Ill], Trouble] = {}
        self._overcome: deque[Trouble] = deque(maxlen=TROUBLES_KEPT)
        self._cuts: dict[int, Partition] = {}
        self._restarts: dict[int, asyncio.Task[None]] = {}
        self._finishing = False

    # What the crew calls.

    def sampled(self, process: int, sample: Sample) -> None:
        self._samples[process] = sample
        self._moments += ((process, moment) for moment in sample.moments)

    def have_enough(self) -> bool:
        """Somebody has said so; or all is said, and nobody is in trouble who could be helped."""
        if not self._finishing and not self._troubles and not self._restarts:
            children = self._crew.children
            self._finishing = all(c.alive and c.sample and c.sample.finished for c in children)
        return self._finishing

    @contextlib.asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Within, the audience looks on and may act; at the end nobody is left paused."""
        self._audience.begin(self)
        showing = asyncio.create_task(self._show())
        try:
            yield
        finally:
            self._finishing = True
            restarts = list(self._restarts.values())
            for task in (showing, *restarts):
                task.cancel()
            await asyncio.gather(showing, *restarts, return_exceptions=True)
            for process, ill in list(self._troubles):
                if ill == "paused":
                    self._crew.pause(process, on=False)
            self._audience.see(self._look())

    # What the audience calls.

    async def act(self, what: str, process: int | None = None) -> None:
        """One of `ACTS` on a process, or one of `GROUP_ACTS`."""
        if self._finishing:
            raise UsageError("the group is coming to rest: nothing can be done to it any more")
        if what in GROUP_ACTS:
            await getattr(self, what)()
        elif what not in ACTS:
            raise UsageError(f"{what!r} is nothing that can be done: choose one of {ACTS}")
        elif process is None or not 0 <= process < len(self._crew.children):
            raise UsageError(f"there is no process {process}")
        elif what == "restart":
            await self.restart(process)
        else:
            getattr(self, what)(process)

    def pause(self, process: int) -> None:
        self._need_running(process)
        self._crew.pause(process, on=True)
        self._falls_ill(process, "paused", "paused")

    def resume(self, process: int) -> None:
        self._need(process, "paused")
        self._crew.pause(process, on=False)
        self._recovers(process, "paused", "goes on")

    def cut(self, process: int) -> None:
        if process in self._cuts:
            raise UsageError(f"p{process} is cut off already")
        others = tuple(other for other in range(len(self._crew.children)) if other != process)
        self._cuts[process] = Partition((others,), Span())
        self._network.part(self._cuts[process])
        self._falls_ill(process, "cut off", "cut off")

    def reconnect(self, process: int) -> None:
        self._need(process, "cut off")
        self._network.heal(self._cuts.pop(process))
        self._recovers(process, "cut off", "reconnected")

    def kill(self, process: int) -> None:
        self._need_running(process, or_paused=True)
        self._crew.kill(process)
        if (process, "paused") in self._troubles:
            self._recovers(process, "paused")
        self._falls_ill(process, "down", "killed")

    async def restart(self, process: int) -> None:
        """Over when it is back, or will not come."""
        self._look_for_the_dead()
        self._need(process, "down")
        if process in self._restarts:
            raise UsageError(f"p{process} is being started")
        self._restarts[process] = asyncio.create_task(self._start_again(process))
        await self._restarts[process]

    async def heal(self) -> None:
        """Wake the paused, reconnect those that are cut off, start the dead again."""
        self._look_for_the_dead()
        for process, ill in list(self._troubles):
            if ill == "paused":
                self.resume(process)
            elif ill == "cut off":
                self.reconnect(process)
        down = [process for process, ill in self._troubles if ill == "down"]
        await asyncio.gather(*(self.restart(p) for p in down if p not in self._restarts))
        await asyncio.gather(*self._restarts.values())

    async def finish(self) -> None:
        """Let nobody send any more, and the group come to rest; who is down stays so for good."""
        self._look_for_the_dead()
        down = {process for process, ill in self._troubles if ill == "down"} - set(self._restarts)
        in_the_way = [f"p{process} is being started" for process in self._restarts]
        for process, ill in self._troubles:
            if ill != "down" and process not in down:
                in_the_way.append(f"p{process} is {ill}")
        if in_the_way:
            raise UsageError(f"the group cannot come to rest: {', '.join(in_the_way)}")
        self._finishing = True
        self._crew.note("sending ends")

    async def heal_and_finish(self) -> None:
        await self.heal()
        await self.finish()

    # Little things.

    async def _start_again(self, process: int) -> None:
        try:
            back = await self._crew.restart(process)
        finally:
            del self._restarts[process]
        if back:
            self._recovers(process, "down", "back")
        else:
            self._crew.note(f"p{process} did not come back")

    def _need(self, process: int, ill: Ill) -> None:
        if (process, ill) not in self._troubles:
            raise UsageError(f"p{process} is not {ill}")

    def _need_running(self, process: int, *, or_paused: bool = False) -> None:
        state = self._state(process)
        if state != "running" and not (or_paused and state == "paused"):
            raise UsageError(f"p{process} is {state} already")

    def _falls_ill(self, process: int, ill: Ill, noted: str) -> None:
        self._troubles[process, ill] = Trouble(process, ill, _now_us())
        self._crew.note(f"p{process} {noted}")

    def _recovers(self, process: int, ill: Ill, noted: str | None = None) -> None:
        over = self._troubles.pop((process, ill))
        self._overcome.append(msgspec.structs.replace(over, until_us=_now_us()))
        if noted is not None:
            self._crew.note(f"p{process} {noted}")

    def _look_for_the_dead(self) -> None:
        """Some die by themselves."""
        for child in self._crew.children:
            known = (child.index, "down") in self._troubles or child.index in self._restarts
            if child.crashed and not known:
                self._falls_ill(child.index, "down", f"ended: {child.cause}")

    def _state(self, process: int) -> State:
        if process in self._restarts:
            return "starting"
        if (process, "down") in self._troubles or not self._crew.lives(process):
            return "down"
        return "paused" if (process, "paused") in self._troubles else "running"

    async def _show(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._look_for_the_dead()
            self._audience.see(self._look())

    def _look(self) -> Look:
        moments = tuple(self._moments)
        self._moments.clear()
        return Look(
            time_us=_now_us(),
            finishing=self._finishing,
            members=tuple(self._member(child.index) for child in self._crew.children),
            moments=moments,
            every=max((sample.every for sample in self._samples.values()), default=1),
            troubles=(*self._overcome, *self._troubles.values()),
            happened=self._crew.happened,
        )

    def _member(self, process: int) -> MemberLook:
        return look_at(
            process,
            self._samples.get(process),
            state=self._state(process),
            cut=process in self._cuts,
            suspected_by=tuple(
                c.index for c in self._crew.children if c.alive and process in c.suspected
            ),
        )


def _now_us() -> int:
    return time.time_ns() // 1000
