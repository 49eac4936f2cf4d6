"""An application for tests: one member that sends, and writes down what it is handed.

    python -m tests.runtime.app '{"me": "a", "peers": {…}, "send": 500, …}'

Lines on stdout: `joined`, `got POSITION SENDER NUMBER`, `stable NUMBER`, `sent COUNT`. Ends when
stdin does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import ordercast


def say(line: str) -> None:
    """In one piece and at once: whoever reads this knows that it happened."""
    os.write(1, line.encode() + b"\n")


async def main(options: dict[str, Any]) -> None:
    count, pause_s = options.pop("send"), options.pop("pause_s", 0.0)
    options["settings"] = ordercast.Settings(**options.pop("settings", {}))
    async with ordercast.join("g", **options) as group, asyncio.TaskGroup() as tasks:
        say("joined")
        reading = tasks.create_task(read(group))
        sending = tasks.create_task(send(group, count, pause_s))
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, sys.stdin.read)
        reading.cancel()
        sending.cancel()


async def read(group: ordercast.Group) -> None:
    async for delivery in group:
        say(f"got {delivery.position} {delivery.sender} {delivery.number}")


async def send(group: ordercast.Group, count: int, pause_s: float) -> None:
    for number in range(count):
        receipt = await group.send(b"%d" % number)
        if number % 10 == 0:
            await receipt.stable()
            say(f"stable {receipt.number}")
        await asyncio.sleep(pause_s)
    say(f"sent {count}")


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
