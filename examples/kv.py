"""A replicated key-value store.

Every replica carries out the same writes in the same order, so all of them hold the same. And
since everyone sees the same winner, compare-and-set needs no lock: of those who try at the same
time, the one whose command comes first in the one order succeeds, everywhere. If a replica dies,
the others stand still for two seconds at most, and go on. A new one gets all that is there.

    python examples/kv.py --demo
    python examples/kv.py --me a --peers a=127.0.0.1:7001 b=127.0.0.1:7002 c=127.0.0.1:7003
    python examples/kv.py --me d --via 127.0.0.1:7001 --listen 127.0.0.1:7004

Commands on stdin: get K, put K V, cas K OLD NEW, add K (by compare-and-set), sync, dump, members,
remove NAME. With --journal DIR a replica that was killed comes back with what it had.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from demo import Member, free_addresses, lines, main

import ordercast


class Store:
    """What every replica holds: a machine, as `ordercast.replicate` wants it."""

    def __init__(self) -> None:
        self.data: dict[str, str] = {}

    def apply(self, command: bytes, sender: str) -> bool:
        match json.loads(command):
            case ["put", key, value]:
                self.data[key] = value
            case ["cas", key, old, new]:
                if self.data.get(key) != old:
                    return False
                self.data[key] = new
        return True

    def save(self) -> bytes:
        return json.dumps(self.data).encode()

    def load(self, state: bytes) -> None:
        self.data = json.loads(state)


class Client:
    """One replica in use. Reads are local: `sync` first to see all that was written by now."""

    def __init__(self, store: Store, replica: ordercast.Replica) -> None:
        self._store = store
        self._replica = replica

    async def do(self, *operation: str | None) -> Any:
        return await self._replica.do(json.dumps(operation).encode())

    async def add(self, key: str) -> None:
        """Count up, however many do so at the same time."""
        won = False
        while not won:
            old = self._store.data.get(key)
            won = await self.do("cas", key, old, str(int(old or 0) + 1))

    async def obey(self, line: str) -> str | None:
        """What to print."""
        match line.split():
            case ["get", key]:
                return f"{key} {self._store.data.get(key)}"
            case ["put", key, value]:
                await self.do("put", key, value)
            case ["cas", key, old, new]:
                won = await self.do("cas", key, None if old == "-" else old, new)
                return f"{'won' if won else 'lost'} {key}"
            case ["add", key]:
                await self.add(key)
            case ["sync"]:
                await self._replica.sync()
            case ["dump"]:
                return json.dumps(self._store.data, sort_keys=True)
            case ["members"]:
                return " ".join(self._replica.members)
            case ["remove", name]:
                await self._replica.remove(name)
            case words:
                return f"what is {' '.join(words)!r}?"
        return None


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--via", help="where a replica runs, to be one more: 127.0.0.1:7001")
    parser.add_argument("--listen", help="where this one is then: 127.0.0.1:7004")
    parser.add_argument("--journal", help="a directory that brings it back after a kill")


async def be_one(options: argparse.Namespace) -> None:
    store = Store()
    async with ordercast.replicate(
        "kv",
        store,
        me=options.me,
        peers=options.peers,
        via=options.via,
        listen=options.listen,
        journal=options.journal,
    ) as replica:
        client = Client(store, replica)
        async for line in lines():
            try:
                said = await client.obey(line)
            except ordercast.OrdercastError as error:
                said = f"sorry: {error}"
            if said is not None:
                print(said, flush=True)


async def demo(members: dict[str, Member]) -> None:
    for member in members.values():  # nobody waits for anybody here: all three do this at once
        await member.tell(f"cas leader - {member.name}")
        for _ in range(20):
            await member.tell("add counter")
        await member.tell(f"put {member.name} was-here\nget {member.name}")
    said = {name: [await m.hear(), await m.hear()] for name, m in members.items()}
    winners = [name for name, (outcome, _) in said.items() if outcome == "won leader"]
    dumps = {await member.ask("sync\ndump") for member in members.values()}
    [where] = free_addresses(1)
    late = members["d"] = await Member.start(
        *("d", where, "--via", members["a"].address, "--listen", where)
    )
    dumps.add(await late.ask("sync\ndump"))  # it gets what it has missed
    [data] = dumps  # fails if any two replicas differ
    counter = json.loads(data)["counter"]
    print(f"all equal, d too; {winners} won the lead; 3 times 20 additions make {counter}")


if __name__ == "__main__":
    main(__doc__, member=be_one, demo=demo, add_options=add_options)
