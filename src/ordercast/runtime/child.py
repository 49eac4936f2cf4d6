"""One member's process, as its launcher sees it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable

import msgspec

from ordercast.runtime.control import (
    Answer,
    Assignment,
    Command,
    Listening,
    Present,
    Sample,
    Stop,
    decode_report,
    encode_line,
)
from ordercast.runtime.rest import Counters

__all__ = ["Child"]

LINE_BYTES_MAX = 2**20
KILLED_S = 1.0
"""How long a process that was killed may take to be gone."""

logger = logging.getLogger(__name__)


class Child:
    """`on_news` is called whenever one of the public attributes has changed."""

    def __init__(
        self,
        assignment: Assignment,
        *,
        on_news: Callable[[], None],
        on_sample: Callable[[int, Sample], None] | None,
    ) -> None:
        self.index = assignment.me
        self.port: int | None = None
        self.others: tuple[int, ...] = ()
        """Those it is connected to."""
        self.suspected: tuple[int, ...] = ()
        """Those it thinks are down."""
        self.round = 0
        self.counters: Counters | None = None
        """Its latest answer, to the question of that round."""
        self.sample: Sample | None = None
        """Its latest."""
        self.exit_code: int | None = None
        self.ends_us: tuple[int, ...] = ()
        """When this life, and those before it, were seen to end."""
        self._assignment = assignment
        self._on_news = on_news
        self._on_sample = on_sample
        self._process: asyncio.subprocess.Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self._last_words: deque[str] = deque(maxlen=1)
        self._asked_to_stop = False
        self._forced_to_stop = False

    @property
    def alive(self) -> bool:
        return self._process is not None and self.exit_code is None

    @property
    def crashed(self) -> bool:
        """Whether it ended by itself. One that is killed just when it is asked to stop counts."""
        if self.exit_code is None or self._forced_to_stop:
            return False
        return self.exit_code != 0 or not self._asked_to_stop

    @property
    def cause(self) -> str:
        """Why it is not alive any more."""
        assert self.exit_code is not None
        if self.exit_code < 0:
            return f"killed by {signal.Signals(-self.exit_code).name}"
        words = self._last_words[0] if self._last_words else "it said nothing"
        return f"exit code {self.exit_code}: {words}"

    def reborn(self) -> Child:
        """The same member's next life, which is still to start."""
        child = Child(self._assignment, on_news=self._on_news, on_sample=self._on_sample)
        child.ends_us = self.ends_us
        return child

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # a file of the user's in the current directory must not shadow a module
            "-m",
            "ordercast.runtime.member",
            str(os.getpid()),  # so that it can tell whether it is an orphan
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the launcher, which then ends its members
            limit=LINE_BYTES_MAX,
        )
        self._watching = asyncio.create_task(self._watch(self._process))
        self.tell(self._assignment)

    def tell(self, command: Command) -> None:
        if self.alive:
            assert self._process is not None
            assert self._process.stdin is not None
            self._process.stdin.write(encode_line(command))

    def strike(self, signal_number: signal.Signals) -> None:
        """A fault, not an end: one that dies of it has crashed."""
        if self.alive:
            assert self._process is not None
            self._process.send_signal(signal_number)

    def ask_to_stop(self) -> None:
        if self.alive:
            self._asked_to_stop = True
            self.tell(Stop())

    def terminate(self) -> None:
        self._force(signal.SIGTERM)

    def kill(self) -> None:
        self._force(signal.SIGKILL)

    async def forget(self) -> None:
        """Stop watching, at the end of the run."""
        if self._watching is None:
            return
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)
        if self._watching.cancelled():
            # It was killed, and will end at once. Nobody may hear of that after the loop is closed.
            assert self._process is not None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(KILLED_S):
                    await self._process.communicate()

    def _force(self, signal_number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._forced_to_stop = True
            self._process.send_signal(signal_number)

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        hearing = self._hear(process.stdout), self._overhear(process.stderr)
        for flaw in await asyncio.gather(*hearing, return_exceptions=True):
            if isinstance(flaw, Exception):  # such as a line without end
                logger.error("p%d cannot be heard any more", self.index, exc_info=flaw)
        self.exit_code = await process.wait()
        self.ends_us += (time.time_ns() // 1000,)
        self._on_news()

    async def _hear(self, reports: asyncio.StreamReader) -> None:
        async for line in reports:
            try:
                report = decode_report(line)
            except msgspec.DecodeError:  # something in its environment prints to stdout
                logger.warning("p%d said what is no report: %r", self.index, line)
                continue
            match report:
                case Listening(port):
                    self.port = port
                case Present(others, suspected):
                    self.others, self.suspected = others, suspected
                case Answer(round, counters):
                    self.round, self.counters = round, counters
                case Sample() as sample:
                    self.sample = sample
                    if self._on_sample is not None:
                        self._on_sample(self.index, sample)
            self._on_news()

    async def _overhear(self, log: asyncio.StreamReader) -> None:
        async for line in log:
            if words := line.decode(errors="replace").strip():
                self._last_words.append(words)
                logger.info("p%d: %s", self.index, words)
