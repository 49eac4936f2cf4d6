"""The program of one member of a run: `python -m ordercast.runtime.member PID`, for the launcher
with that process id.

Commands come on stdin, reports go to stdout (see `control`), logs to stderr. Exits 0 after a
stop, 3 when the launcher is gone, 1 with a traceback when a bug shows up. On Linux the kernel
kills it when its launcher dies, in whatever state it is then; see `leash`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
from collections.abc import AsyncIterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from ordercast.protocols import catalog
from ordercast.runtime.control import (
    Answer,
    Ask,
    Assignment,
    Finish,
    Go,
    Listening,
    Meet,
    Present,
    Read,
    Report,
    Stop,
    decode_command,
    encode_line,
)
from ordercast.runtime.discovery import Address
from ordercast.runtime.door import Door
from ordercast.runtime.group import Group
from ordercast.runtime.leash import end_with
from ordercast.runtime.living import living
from ordercast.runtime.node import HOST, Node
from ordercast.runtime.samples import WatchedLog, keep_reporting, sample_of
from ordercast.runtime.settings import Settings
from ordercast.runtime.weather import Weather
from ordercast.trace.span_log import SpanLog

__all__ = ["main", "payload_of"]

EXCERPT_CHARS = 40

LINE_BYTES_MAX = 2**20
FLUSH_S = 0.3
LAUNCHER_GONE = 3

logger = logging.getLogger(__name__)


def main() -> int:
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    if not end_with(parent=int(sys.argv[1])):
        return LAUNCHER_GONE
    return asyncio.run(_main())


def payload_of(me: int, number: int, size: int) -> bytes:
    """Readable, and exactly `size` bytes long."""
    return f"p{me} #{number}".encode()[:size].ljust(size, b".")


async def _main() -> int:
    async with _stdin() as commands:
        return await _follow(commands)


async def _follow(commands: asyncio.StreamReader) -> int:
    line = await commands.readline()
    if not line:
        return LAUNCHER_GONE
    plan = decode_command(line)
    assert isinstance(plan, Assignment)
    name = f"p{plan.me}"
    door = Door(plan.run, name)

    def build() -> Any:
        return catalog.build(
            plan.ordering, plan.dissemination, plan.me, plan.processes, seed=plan.seed
        )

    kind = WatchedLog if plan.live else SpanLog
    with kind(Path(plan.log), name, run=plan.run, process=plan.me) as log:
        address = await door.open(HOST, plan.port)
        async with living(
            build,
            door=door,
            names=tuple(f"p{process}" for process in range(plan.processes)),
            charter=f"{plan.ordering} over {plan.dissemination}",
            settings=Settings(dead_after_s=plan.dead_after_s, excerpt_chars=EXCERPT_CHARS),
            log=log,
            journal=Path(plan.journal) if plan.journal is not None else None,
            weather=plan.weather if plan.weather != Weather() else None,
            on_presence=lambda others: _say(Present(others, member.node.company.suspected)),
            seed=plan.seed,
            flush_s=FLUSH_S,
        ) as (node, _):
            member = _Member(plan, node, log)
            _say(Listening(address.port))
            return await member.run(commands)


class _Member:
    def __init__(self, assignment: Assignment, node: Node, log: SpanLog) -> None:
        self.node = node
        self._log = log
        self.group = Group(node, name=assignment.run, algorithm="", uniform=False)
        self._assignment = assignment
        self._finished = False
        self._reading = asyncio.Event()
        self._reading.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._sending: asyncio.Task[None] | None = None

    async def run(self, commands: asyncio.StreamReader) -> int:
        """Obey until told to stop; raises what went wrong anywhere in this process."""
        self._tasks.append(asyncio.create_task(self._receive_all()))
        if isinstance(log := self._log, WatchedLog):
            look = partial(sample_of, self._assignment, self.node, log)
            reporting = keep_reporting(lambda: look(finished=self._finished), _say)
            self._tasks.append(asyncio.create_task(reporting))
        obeying = asyncio.create_task(self._obey(commands))
        try:
            ends: set[asyncio.Future[Any]] = {obeying, self.node.failure}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return obeying.result() if obeying.done() else self._raise_failure()
        finally:
            tasks = [obeying, *self._tasks]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _obey(self, commands: asyncio.StreamReader) -> int:
        while line := await commands.readline():
            match decode_command(line):
                case Meet(ports):
                    self.node.dial({me: Address(HOST, port) for me, port in enumerate(ports)})
                case Go():
                    self._sending = asyncio.create_task(self._send_all())
                    self._tasks.append(self._sending)
                case Read(on):
                    self._reading.set() if on else self._reading.clear()
                case Ask(round):
                    counters = msgspec.structs.replace(
                        self.node.counters(), finished=self._finished
                    )
                    _say(Answer(round, counters))
                case Finish():
                    if self._sending is not None:
                        self._sending.cancel()
                    self._end_sending()
                case Stop():
                    return 0
                case Assignment():
                    raise AssertionError("a member has one assignment")
        logger.warning("p%d: the launcher is gone, so this member ends", self._assignment.me)
        return LAUNCHER_GONE

    async def _send_all(self) -> None:
        """Whoever was killed goes on after the last message that it remembers."""
        plan = self._assignment
        chance = random.Random(f"{plan.seed}/{plan.me}/traffic")
        others = [process for process in range(plan.processes) if process != plan.me] or [plan.me]
        to_one = catalog.ORDERINGS[plan.ordering].destinations == "one"
        try:
            for number in count(self.node.core.sent + 1):
                if plan.messages is not None and number > plan.messages:
                    break
                # Uneven, so that sends and deliveries of the members interleave in many ways.
                await asyncio.sleep(plan.interval_ms / 1000 * chance.uniform(0.5, 1.5))
                to = [f"p{chance.choice(others)}"] if to_one else None
                await self.group.send(payload_of(plan.me, number, plan.payload_bytes), to)
            self._end_sending()
        except Exception as bug:
            self.node.fail(bug)

    def _end_sending(self) -> None:
        self.node.sending_ends()
        self._finished = True

    async def _receive_all(self) -> None:
        async for _ in self.group.batches():
            await self._reading.wait()

    def _raise_failure(self) -> int:
        self.node.failure.result()
        raise AssertionError("a failure holds an exception")


@contextlib.asynccontextmanager
async def _stdin() -> AsyncIterator[asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        yield reader
    finally:
        pipe.close()


def _say(report: Report) -> None:
    with contextlib.suppress(BrokenPipeError):  # the end of stdin will say that it is over
        sys.stdout.buffer.write(encode_line(report))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
