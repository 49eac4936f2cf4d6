"""Starting, asking and ending processes. Each is ended by its pid, whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

__all__ = [
    "QUIET_CORES",
    "CaseError",
    "Child",
    "busy_s",
    "cpu_s",
    "free_addresses",
    "quiet",
    "started",
    "until_listening",
]

QUIET_CORES = 0.15
"""So much of the machine taken by others is not worth a remark."""

_PRCTL = ctypes.CDLL(None).prctl
_PR_SET_PDEATHSIG = 1
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class CaseError(Exception):
    """One case came to nothing; a sentence for the table."""


class Child:
    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid

    async def ask(self, line: str) -> dict[str, str]:
        """Say a line, and the words of the answer."""
        await self.say(line)
        answer = await self.heard()
        return dict(word.split("=", 1) for word in answer.split())

    async def say(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()

    async def heard(self) -> str:
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        if not line:
            raise CaseError(f"a process ended: {self.last_words()}")
        return line.strip()

    def last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1][-300:] if lines else "it said nothing"

    async def end(self) -> None:
        for number, patience_s in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0)):
            if self._process.returncode is not None:
                return
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), patience_s)


@asynccontextmanager
async def started(
    command: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> AsyncIterator[Child]:
    """What it prints on stdout is for `ask`; stderr goes to the log."""
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            *map(str, command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=None if env is None else {**os.environ, **env},
            cwd=cwd,
            limit=1 << 24,
            preexec_fn=_die_with_parent,
        )
    child = Child(process, log)
    try:
        yield child
    finally:
        await asyncio.shield(child.end())


def _die_with_parent() -> None:
    _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL)


def cpu_s(pids: Sequence[int]) -> float:
    """Processor time of whole processes, all their threads."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(words[11]) + int(words[12])
    return total / _TICKS_PER_S


def busy_s() -> float:
    """Processor time that all programs of this machine have taken."""
    with Path("/proc/stat").open() as lines:
        words = next(lines).split()
    return sum(map(int, words[1:4])) / _TICKS_PER_S


async def quiet(patience_s: float) -> None:
    """Wait until other programs leave this machine alone, but not for ever."""
    end = asyncio.get_running_loop().time() + patience_s
    while asyncio.get_running_loop().time() < end:
        before = busy_s()
        await asyncio.sleep(1)
        if busy_s() - before < QUIET_CORES:
            return


def free_addresses(count: int, host: str = "127.0.0.1") -> list[str]:
    """Ports that nobody has at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((host, 0))
        return [f"{host}:{one.getsockname()[1]}" for one in sockets]
    finally:
        for one in sockets:
            one.close()


async def until_listening(address: str, child: Child, within_s: float = 10) -> None:
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(within_s):
            while True:
                try:
                    _, writer = await asyncio.open_connection(host, int(port))
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                return
    except TimeoutError:
        raise CaseError(f"a server does not listen: {child.last_words()}") from None
