"""Starts a group of real processes on this machine, lets them exchange messages, waits until the
group is at rest, ends everything, and leaves one trace.

However this ends (rest, timeout, cancellation, an error), no process, port or temporary file is
left, and what happened so far is in the trace. If the launcher itself is killed, the members
notice the end of their stdin and exit; their logs stay in `members/`.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from ordercast.runtime.child import Child
from ordercast.runtime.collect import Tally, collect, manifest_of
from ordercast.runtime.control import Ask, Assignment, Command, Dead, Go, Meet
from ordercast.runtime.plan import Crash, MemberOutcome, Outcome, Phase, Plan, Progress
from ordercast.runtime.rest import Counters, at_rest
from ordercast.trace import TraceWriter

__all__ = ["launch"]

POLL_S = 0.05
ENDING_STEP_S = 1.0
"""How long members have to stop when asked, then when terminated, then when killed."""


async def launch(
    plan: Plan, *, directory: Path, progress: Callable[[Progress], None] | None = None
) -> Outcome:
    """Run the plan. Cancelling ends the members and still writes the trace, as not at rest."""
    plan.check()
    started = time.monotonic()
    with TraceWriter(directory) as writer:
        logs = directory / "members"
        logs.mkdir()
        crew = _Crew(plan, logs, progress or (lambda step: None))
        quiesced = False
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(plan.timeout_s):
                    quiesced = await crew.assemble() and await crew.come_to_rest()
        finally:
            try:
                await crew.dismiss()
            finally:  # a second Ctrl-C may have cut the dismissal short; not the trace
                tallies = crew.collect(writer)
                crashed = crew.crashed
                who = {crash.process for crash in crashed}
                writer.add_manifest(manifest_of(plan, quiesced=quiesced, crashed=who))
                shutil.rmtree(logs)
    return Outcome(
        directory=directory,
        quiesced=quiesced,
        members=crew.members(tallies),
        crashed=crashed,
        duration_s=time.monotonic() - started,
    )


class _Crew:
    def __init__(self, plan: Plan, logs: Path, progress: Callable[[Progress], None]) -> None:
        self._plan = plan
        self._logs = logs
        self._progress = progress
        self._told: Progress | None = None
        self._phase: Phase = "gathering"
        self._news = asyncio.Event()
        self._round = 0
        self._known_dead: set[int] = set()
        self._starting: list[asyncio.Task[None]] = []
        self._children = [
            Child(self._assignment(me), on_news=self._news.set) for me in range(plan.processes)
        ]

    async def assemble(self) -> bool:
        """Start everyone and let them connect; False if one died before the group was whole."""
        self._starting = [asyncio.create_task(child.start()) for child in self._children]
        # Not gather: being cancelled here must not interrupt a start half-way.
        await asyncio.wait(self._starting)
        for task in self._starting:
            task.result()
        await self._until(lambda: self._someone_died() or self._ports() is not None)
        ports = self._ports()
        if ports is None or self._someone_died():
            return False
        self._phase = "connecting"
        self._tell_all(Meet(ports))
        others = self._plan.processes - 1
        await self._until(
            lambda: self._someone_died() or all(len(c.others) == others for c in self._children)
        )
        return not self._someone_died()

    async def come_to_rest(self) -> bool:
        self._phase = "running"
        self._tell_all(Go())
        before = await self._poll()
        while True:
            await asyncio.sleep(POLL_S)
            now = await self._poll()
            if at_rest(before, now):
                return True
            before = now

    async def dismiss(self) -> None:
        """End every process: asked, then told, then killed; within three seconds or so."""
        self._phase = "stopping"
        try:
            if self._starting:
                await asyncio.wait(self._starting)
            for step in (Child.ask_to_stop, Child.terminate, Child.kill):
                for child in self._children:
                    step(child)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ENDING_STEP_S):
                        await self._until(lambda: not any(c.alive for c in self._children))
        finally:
            for child in self._children:
                child.kill()
            for child in self._children:
                await child.forget()

    @property
    def crashed(self) -> tuple[Crash, ...]:
        return tuple(Crash(child.index, child.cause) for child in self._children if child.crashed)

    def collect(self, writer: TraceWriter) -> list[Tally]:
        return [
            collect(
                self._logs,
                writer,
                run=self._plan.run,
                process=child.index,
                crashed=child.crashed,
            )
            for child in self._children
        ]

    def members(self, tallies: list[Tally]) -> tuple[MemberOutcome, ...]:
        return tuple(
            MemberOutcome(
                tally.sent, tally.delivered, child.counters.held_max if child.counters else 0
            )
            for child, tally in zip(self._children, tallies, strict=True)
        )

    def _assignment(self, me: int) -> Assignment:
        plan = self._plan
        return Assignment(
            run=plan.run,
            me=me,
            processes=plan.processes,
            ordering=plan.ordering,
            dissemination=plan.dissemination,
            messages=plan.messages,
            payload_bytes=plan.payload_bytes,
            interval_ms=plan.interval_ms,
            seed=plan.seed,
            weather=plan.weather,
            log=str(self._logs.absolute()),
        )

    def _ports(self) -> tuple[int, ...] | None:
        ports = tuple(child.port for child in self._children if child.port is not None)
        return ports if len(ports) == self._plan.processes else None

    def _someone_died(self) -> bool:
        return any(child.crashed for child in self._children)

    async def _poll(self) -> dict[int, Counters]:
        """One look at all the living; over when the last of them has answered, or died.

        They hear of the dead first, so that what they do about it shows in their answers.
        """
        for child in self._children:
            if child.crashed and child.index not in self._known_dead:
                self._known_dead.add(child.index)
                self._tell_all(Dead(child.index))
        self._round += 1
        self._tell_all(Ask(self._round))
        await self._until(
            lambda: all(c.round == self._round or not c.alive for c in self._children)
        )
        return {c.index: c.counters for c in self._children if c.alive and c.counters}

    def _tell_all(self, command: Command) -> None:
        for child in self._children:
            child.tell(command)

    async def _until(self, condition: Callable[[], bool]) -> None:
        self._tell_progress()
        while not condition():
            self._news.clear()
            await self._news.wait()
            self._tell_progress()

    def _tell_progress(self) -> None:
        plan, counters = self._plan, [c.counters for c in self._children if c.counters]
        now = Progress(
            phase=self._phase,
            present=sum(child.alive and child.port is not None for child in self._children),
            processes=plan.processes,
            sent=sum(member.sent for member in counters),
            to_send=plan.processes * plan.messages,
            delivered=sum(member.delivered for member in counters),
            to_deliver=plan.deliveries,
            held=sum(member.held for member in counters),
            crashed=sum(child.crashed for child in self._children),
        )
        if now != self._told:
            self._told = now
            self._progress(now)
