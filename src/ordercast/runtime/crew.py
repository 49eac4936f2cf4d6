"""The members of a run, as one: they start, meet, suffer, come to rest and are dismissed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from ordercast.runtime.child import Child
from ordercast.runtime.control import Ask, Command, Finish, Go, Meet, Read, assign
from ordercast.runtime.faults import Happening, Network, conduct
from ordercast.runtime.hands import Hands
from ordercast.runtime.looks import Audience
from ordercast.runtime.plan import Crash, Phase, Plan, Progress
from ordercast.runtime.ports import reserve
from ordercast.runtime.rest import Counters, at_rest

__all__ = ["Crew"]

POLL_S = 0.05
ENDING_STEP_S = 1.0
"""How long members have to stop when asked, then when terminated, then when killed."""


class Crew:
    def __init__(
        self,
        plan: Plan,
        logs: Path,
        progress: Callable[[Progress], None],
        audience: Audience | None = None,
    ) -> None:
        self._plan = plan
        self._logs = logs
        self._progress = progress
        self._told: Progress | None = None
        self._phase: Phase = "gathering"
        self._news = asyncio.Event()
        self._round = 0
        self._starting: set[asyncio.Task[None]] = set()
        self._ports: tuple[int, ...] = ()
        """Where everyone listens, in all their lives."""
        self._reserved: list[socket.socket] = []
        if plan.restarts:
            self._reserved = [reserve() for _ in range(plan.processes)]
        self.network: Network | None = None
        if plan.proxied:
            self.network = Network(plan.faults, plan.processes, seed=plan.seed)
        self._hands: Hands | None = None
        if plan.live:
            assert self.network is not None
            assert audience is not None
            self._hands = Hands(self, self.network, audience)
        self.children = [self._child(me) for me in range(plan.processes)]
        self._began: float | None = None
        self.happened: tuple[Happening, ...] = ()
        self.killed: set[int] = set()
        """Whom a fault has killed, and nobody has started again."""
        self._suspicions: set[tuple[int, int]] = set()

    async def assemble(self) -> bool:
        """Start everyone and let them connect; False if one died before the group was whole."""
        await self._start(*self.children)
        await self._until(lambda: self._someone_died() or self._all_listen())
        if self._someone_died():
            return False
        self._phase = "connecting"
        self._ports = tuple(child.port or 0 for child in self.children)
        if self.network is not None:
            await self.network.open(self._ports)
        for child in self.children:
            child.tell(self._introduction(child.index))
        others = self._plan.processes - 1
        await self._until(
            lambda: self._someone_died() or all(len(c.others) == others for c in self.children)
        )
        return not self._someone_died()

    async def come_to_rest(self, patience: asyncio.Timeout) -> None:
        """Over when all faults are, and everyone who is not dead for good has come to rest. While
        a person has the group in hand, there is no end to the patience."""
        self._phase = "running"
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        self._tell_all(Go())
        conducting = asyncio.create_task(conduct(self._plan.faults, self, self.network))
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(_end, conducting)
            if self._hands is not None:
                patience.reschedule(None)
                await stack.enter_async_context(self._hands.shown())
                await self._until(self._hands.have_enough)
                patience.reschedule(loop.time() + self._plan.timeout_s)
                self._tell_all(Finish())
            await self._rest(conducting)

    async def _rest(self, conducting: asyncio.Task[None]) -> None:
        before: dict[int, Counters] | None = None
        while True:
            over = conducting.done()
            if over:
                conducting.result()
            now = await self._poll()
            if before is not None and at_rest(before, now):
                return
            before = now if over else None
            await asyncio.sleep(POLL_S)

    async def dismiss(self) -> None:
        """End every process: asked, then told, then killed; within three seconds or so."""
        self._phase = "stopping"
        try:
            if self._starting:
                await asyncio.wait(self._starting)
            for step in (Child.ask_to_stop, Child.terminate, Child.kill):
                for child in self.children:
                    step(child)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ENDING_STEP_S):
                        await self._until(lambda: not any(c.alive for c in self.children))
        finally:
            for child in self.children:
                child.kill()
            for child in self.children:
                await child.forget()
            for reserved in self._reserved:
                reserved.close()
            if self.network is not None:
                await self.network.aclose()

    @property
    def crashed(self) -> tuple[Crash, ...]:
        return tuple(Crash(child.index, child.cause) for child in self.children if child.crashed)

    # What faults do to it.

    def note(self, what: str) -> None:
        assert self._began is not None
        at_us = int((asyncio.get_running_loop().time() - self._began) * 1e6)
        self.happened += (Happening(at_us, what),)
        self._news.set()

    def lives(self, process: int) -> bool:
        return self.children[process].alive

    def kill(self, process: int) -> None:
        self.killed.add(process)
        self.children[process].strike(signal.SIGKILL)

    async def restart(self, process: int) -> bool:
        await self._until(lambda: not self.lives(process))
        self.killed.discard(process)
        child = self.children[process] = self.children[process].reborn()
        self._suspicions = {pair for pair in self._suspicions if pair[0] != process}
        await self._start(child)
        await self._until(lambda: child.port is not None or not child.alive)
        if child.port is not None:
            child.tell(self._introduction(process))
            child.tell(Go())
        return child.alive

    def pause(self, process: int, *, on: bool) -> None:
        self.children[process].strike(signal.SIGSTOP if on else signal.SIGCONT)

    def slow(self, process: int, *, on: bool) -> None:
        self.children[process].tell(Read(on=not on))

    # Little things.

    def _child(self, me: int) -> Child:
        port = self._reserved[me].getsockname()[1] if self._reserved else 0
        assignment = assign(self._plan, me, logs=self._logs, port=port)
        on_sample = self._hands.sampled if self._hands is not None else None
        return Child(assignment, on_news=self._news.set, on_sample=on_sample)

    async def _start(self, *children: Child) -> None:
        starting = {asyncio.create_task(child.start()) for child in children}
        self._starting |= starting
        # Not gather: being cancelled here must not interrupt a start half-way.
        await asyncio.wait(starting)
        for task in starting:
            task.result()

    def _introduction(self, me: int) -> Meet:
        ports = self._ports
        return Meet(ports if self.network is None else self.network.ports_for(me, ports))

    def _all_listen(self) -> bool:
        return all(child.port is not None for child in self.children)

    def _someone_died(self) -> bool:
        return any(child.crashed for child in self.children)

    async def _poll(self) -> dict[int, Counters]:
        """One look at all the living; over when the last of them has answered, or died."""
        self._round += 1
        asked = [child for child in self.children if child.alive]
        for child in asked:
            child.tell(Ask(self._round))
        await self._until(lambda: all(c.round == self._round or not c.alive for c in asked))
        return {c.index: c.counters for c in asked if c.alive and c.counters}

    def _tell_all(self, command: Command) -> None:
        for child in self.children:
            child.tell(command)

    async def _until(self, condition: Callable[[], bool]) -> None:
        self._tell_progress()
        while not condition():
            self._news.clear()
            await self._news.wait()
            self._tell_progress()

    def _look_for_suspicions(self) -> None:
        """What the members make of it all."""
        now = {(c.index, other) for c in self.children if c.alive for other in c.suspected}
        before, self._suspicions = self._suspicions, now
        for me, other in sorted(now - before):
            self.note(f"p{me} suspects p{other}")
        for me, other in sorted(before - now):
            if self.children[me].alive:
                self.note(f"p{me} trusts p{other} again")

    def _tell_progress(self) -> None:
        if self._phase == "running":
            self._look_for_suspicions()
        plan = self._plan
        counters = [seen for c in self.children if (seen := c.counters or c.sample)]
        now = Progress(
            phase=self._phase,
            present=sum(child.alive and child.port is not None for child in self.children),
            processes=plan.processes,
            sent=sum(member.sent for member in counters),
            to_send=plan.sends,
            delivered=sum(member.delivered for member in counters),
            to_deliver=plan.deliveries,
            held=sum(member.held for member in counters),
            crashed=sum(child.crashed for child in self.children),
            happened=self.happened,
        )
        if now != self._told:
            self._told = now
            self._progress(now)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
