"""A replica as a process of its own: `python -m tests.replica.child ME HOME OPTIONS…`.

Writes down each command that it carries out and each one of its own that was answered, one line
each, in a file of this life: what a kill leaves of it has happened. Obeys lines on stdin.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import sys
from pathlib import Path
from typing import TextIO

import ordercast


class Ledger:
    """A machine whose state is all that was ever done."""

    def __init__(self, file: TextIO) -> None:
        self.items: list[str] = []
        self._file = file

    def apply(self, command: bytes, sender: str) -> int:
        self.items.append(command.decode())
        self._file.write(f"did {len(self.items)} {self.items[-1]}\n")
        return len(self.items)

    def save(self) -> bytes:
        return json.dumps(self.items).encode()

    def load(self, state: bytes) -> None:
        self.items = json.loads(state)
        self._file.writelines(f"did {n} {item}\n" for n, item in enumerate(self.items, 1))


async def main(me: str, home: Path, listen: str, where: str, keys: str | None) -> None:
    life = f"{me}.{os.getpid()}"
    with (home / f"{life}.log").open("w", buffering=1) as file:
        ledger = Ledger(file)
        founders = json.loads(where) if where.startswith("{") else None
        async with ordercast.replicate(
            "soak",
            ledger,
            me=me,
            peers=founders,
            via=None if founders else where,
            listen=listen,
            keys=keys,
            journal=home / me,
            settings=ordercast.Settings(
                window_bytes=50_000, segment_bytes=100_000, keep_bytes=200_000
            ),
        ) as replica:
            print("here", flush=True)
            giving = asyncio.create_task(give(replica, life, file))
            obeying = asyncio.create_task(obey(replica, ledger, giving))
            ended = asyncio.create_task(replica.ended())
            await asyncio.wait([obeying, ended], return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                print(f"ended: {ended.exception()}", flush=True)
            giving.cancel()


async def give(replica: ordercast.Replica, life: str, file: TextIO) -> None:
    chance, number = random.Random(life), 0
    while True:
        number += 1
        item = f"{life}/{number} {'.' * chance.choice([0, 10, 500])}"
        with contextlib.suppress(ordercast.OutcomeUnknownError):
            place = await replica.do(item.encode())
            file.write(f"got {place} {item}\n")
        await asyncio.sleep(chance.random() * 0.02)


async def obey(replica: ordercast.Replica, ledger: Ledger, giving: asyncio.Task[None]) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := (await reader.readline()).decode():
        match line.split():
            case ["quiet"]:
                giving.cancel()
                print("quiet", flush=True)
            case ["remove", name]:
                try:
                    await replica.remove(name)
                    print("removed", flush=True)
                except ordercast.OrdercastError as error:
                    print(f"sorry: {error}", flush=True)
            case ["state"]:
                await replica.sync()
                digest = hashlib.sha256(ledger.save()).hexdigest()[:12]
                told = [replica.generation, replica.members, len(ledger.items), digest]
                print(json.dumps(told), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:5], (sys.argv[5:] or [None])[0]))
