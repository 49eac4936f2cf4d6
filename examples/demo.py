"""What the examples share: the command line, and a demonstration with three real processes."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import ordercast

NAMES = ("a", "b", "c")
Play = Callable[[dict[str, "Member"]], Coroutine[Any, Any, None]]


def main(
    text: str | None,
    *,
    member: Callable[[argparse.Namespace], Coroutine[Any, Any, None]],
    demo: Play,
    add_options: Callable[[argparse.ArgumentParser], None] = lambda _: None,
) -> None:
    """Be one member, or start three and let them play."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--me", help="the name of this member")
    parser.add_argument("--peers", nargs="+", help="all members: a=127.0.0.1:7001 b=… c=…")
    parser.add_argument("--demo", action="store_true", help="start three members, and watch them")
    add_options(parser)
    options = parser.parse_args()
    others = options.peers or getattr(options, "via", None)
    if not options.demo and not (options.me and others):
        parser.error("say who this is with --me and --peers, or --demo")
    asyncio.run(play(demo) if options.demo else member(options))


def joining(
    order: str, run: Callable[[ordercast.Group], Coroutine[Any, Any, None]]
) -> Callable[[argparse.Namespace], Coroutine[Any, Any, None]]:
    """A member of a group that does not change."""

    async def member(options: argparse.Namespace) -> None:
        async with ordercast.join(
            Path(sys.argv[0]).stem, me=options.me, peers=options.peers, order=order
        ) as group:
            await run(group)

    return member


async def lines() -> AsyncIterator[str]:
    """Of stdin, read in a thread so that the group goes on meanwhile."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(queue.put_nowait, line)
        loop.call_soon_threadsafe(queue.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()
    while line := await queue.get():
        yield line.rstrip("\n")


class Rounds:
    """Members that wait for each other: each sends a message that says so, and waits for as many
    from everyone. In any order from FIFO on, all that they had sent before is here by then."""

    def __init__(self, group: ordercast.Group) -> None:
        self._me = group.me
        self._counts = dict.fromkeys(group.view.members, 0)
        self._changed = asyncio.Event()

    def came(self, sender: str) -> None:
        """Such a message has been delivered here."""
        self._counts[sender] += 1
        self._changed.set()

    async def complete(self) -> None:
        """To be called after sending one's own, before awaiting anything else."""
        goal = self._counts[self._me] + 1
        while min(self._counts.values()) < goal:
            self._changed.clear()
            await self._changed.wait()


class Member:
    """A process that runs the same example, as the demonstration sees it."""

    def __init__(self, name: str, address: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.address = address
        self._process = process

    @classmethod
    async def start(cls, name: str, address: str, *options: str) -> Member:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, sys.argv[0], "--me", name, *options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return cls(name, address, process)

    async def tell(self, lines: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{lines}\n".encode())
        await self._process.stdin.drain()

    async def hear(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode().rstrip("\n")
        if not line:
            raise SystemExit(f"{self.name} has ended")
        print(f"{self.name}| {line}")
        return line

    async def ask(self, lines: str) -> str:
        await self.tell(lines)
        return await self.hear()

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def play(demo: Play) -> None:
    places = dict(zip(NAMES, free_addresses(len(NAMES)), strict=True))
    peers = [f"{name}={place}" for name, place in places.items()]
    members = {name: await Member.start(name, places[name], "--peers", *peers) for name in NAMES}
    try:
        await demo(members)
    finally:
        await asyncio.gather(*(member.end() for member in members.values()))


def free_addresses(count: int) -> list[str]:
    """Free just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return [f"127.0.0.1:{port}" for port in ports]
