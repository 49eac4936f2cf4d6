"""A group of hundreds on one machine: all meet, hear everyone, and leave. By hand:

    python -m tests.runtime.crowd --members 200 --processes 4 [--tls] [--order total]

Several members share a process: one for each would take more memory than sockets do. Says how long
each part took, what a delivery cost, and whether the order held.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

import ordercast
from ordercast.runtime.keys import make_group
from ordercast.testing import check

__all__ = ["GROUP", "Crowd", "allow_files", "names", "take_part"]

GROUP = "crowd"
HEARTBEAT_S = 5.0
"""Everyone sends one to everyone: more often, and a machine with so many does little else."""


class Crowd(msgspec.Struct, frozen=True):
    """What all members of one have in common."""

    home: str
    members: int
    messages: int
    """From each."""
    order: str = "causal"
    tls: bool = False

    @property
    def expected(self) -> int:
        """How much each of them delivers."""
        return self.members * self.messages


class Times(msgspec.Struct):
    """Of one process, in seconds."""

    met: float = 0.0
    heard: float = 0.0
    left: float = 0.0
    cpu: float = 0.0
    """Of the exchange alone."""
    memory_mib: int = 0


def names(count: int) -> list[str]:
    return [f"m{number:03}" for number in range(count)]


def allow_files(count: int) -> int:
    """As many open files as that, if the system lets us; how many there may be."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if most == resource.RLIM_INFINITY else min(count, most)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return max(soft, wanted)


async def take_part(crowd: Crowd, here: Sequence[str]) -> Times:
    """All members of this process, from their start to their end."""
    times, began = Times(), time.monotonic()
    met, heard = asyncio.Barrier(len(here)), asyncio.Barrier(len(here))

    async def one(me: str) -> None:
        home = Path(crowd.home)
        async with ordercast.join(
            GROUP,
            me=me,
            peers=f"registry:{home / 'registry'}?size={crowd.members}",
            order=crowd.order,
            keys=home / "keys" if crowd.tls else None,
            trace=home / "trace",
            timeout_s=300,
            settings=ordercast.Settings(heartbeat_s=HEARTBEAT_S),
        ) as group:
            if not await met.wait():
                times.met, times.cpu = time.monotonic() - began, -time.process_time()
            last = None
            for number in range(crowd.messages):
                last = await group.send(f"{me} {number}".encode())
                await asyncio.sleep(0)
            taken = 0
            async for batch in group.batches():
                taken += len(batch)
                if taken == crowd.expected:
                    break
            assert not group.why_held()
            assert last is not None
            await last.delivered_by()
            if not await heard.wait():
                times.heard = time.monotonic() - began - times.met
                times.cpu += time.process_time()
                times.memory_mib = _memory_mib()

    async with asyncio.TaskGroup() as tasks:
        for me in here:
            tasks.create_task(one(me))
    times.left = time.monotonic() - began - times.met - times.heard
    return times


def _memory_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


def _child() -> None:
    crowd = msgspec.json.decode(sys.argv[2], type=Crowd)
    here = sys.argv[3].split(",")
    allow_files(crowd.members * len(here) + 1000)
    try:
        import uvloop
    except ModuleNotFoundError:
        times = asyncio.run(take_part(crowd, here))
    else:
        times = uvloop.run(take_part(crowd, here))
    sys.stdout.write(msgspec.json.encode(times).decode())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=200)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--messages", type=int, default=3, help="from each member (default: 3)")
    parser.add_argument("--order", default="causal")
    parser.add_argument("--tls", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        crowd = Crowd(home, chosen.members, chosen.messages, chosen.order, chosen.tls)
        everyone = names(crowd.members)
        if crowd.tls:
            make_group(Path(home) / "keys", GROUP, tuple(everyone))
        text = msgspec.json.encode(crowd).decode()
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.runtime.crowd", "-", text, ",".join(part)],
                stdout=subprocess.PIPE,
            )
            for part in (everyone[start :: chosen.processes] for start in range(chosen.processes))
        ]
        try:
            told = [child.communicate(timeout=900)[0] for child in children]
        finally:
            for child in children:
                child.kill()
        if any(child.returncode for child in children):
            sys.exit("a part of the crowd has failed")
        times = [msgspec.json.decode(each, type=Times) for each in told]
        verdicts = check(Path(home) / "trace", rest=True)
    cost_us = sum(each.cpu for each in times) / (crowd.members * crowd.expected) * 1e6
    held = ", ".join(v.property for v in verdicts if v.verdict == "holds")
    print(
        f"{crowd.members} members in {chosen.processes} processes: met in "
        f"{max(each.met for each in times):.1f} s, heard each other in "
        f"{max(each.heard for each in times):.1f} s, left in "
        f"{max(each.left for each in times):.1f} s; {cost_us:.0f} µs of the processor for a "
        f"delivery, {sum(each.memory_mib for each in times)} MiB; holds: {held}"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["-"]:
        _child()
    else:
        main()
