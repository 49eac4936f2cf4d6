"""A replicated key-value store on total order.

Every replica applies the same writes in the same order, so all of them hold the same at the end.
And since everyone sees the same winner, compare-and-set needs no lock: of those who try at the
same time, the one whose message comes first in the one order succeeds, everywhere. If a replica
dies, the others stand still for two seconds at most, and go on.

    python examples/kv.py --demo
    python examples/kv.py --me a --peers a=127.0.0.1:7001 b=127.0.0.1:7002 c=127.0.0.1:7003

Commands on stdin: get K, put K V, cas K OLD NEW, add K (by compare-and-set), sync, meet, dump.
"""

from __future__ import annotations

import asyncio
import json

from demo import Member, Rounds, lines, main

import ordercast


class Store:
    """One replica. Reads are local: `sync` first to see all that was written by now."""

    def __init__(self, group: ordercast.Group) -> None:
        self.data: dict[str, str] = {}
        self._group = group
        self._rounds = Rounds(group)
        self._mine: dict[int, asyncio.Future[bool]] = {}

    async def put(self, key: str, value: str) -> None:
        await self._do("put", key, value)

    async def cas(self, key: str, old: str | None, new: str) -> bool:
        """Set it if it is `old` still (None: if there is nothing); says whether it was."""
        return await self._do("cas", key, old, new)

    async def add(self, key: str) -> int:
        """Count up, however many do so at the same time."""
        while True:
            old = self.data.get(key)
            new = int(old or 0) + 1
            if await self.cas(key, old, str(new)):
                return new

    async def sync(self) -> None:
        """Whatever anyone has seen done is done here: this has its place after all of it."""
        await self._do("sync")

    async def meet(self) -> None:
        """Wait until all replicas have come to this, as often as we have."""
        await self._send("meet")
        await self._rounds.complete()

    async def follow(self) -> None:
        """Apply what is delivered, in the one order."""
        async for delivery in self._group:
            done = self._apply(delivery.sender, json.loads(delivery.payload))
            if delivery.sender == self._group.me and delivery.number in self._mine:
                self._mine.pop(delivery.number).set_result(done)

    def _apply(self, sender: str, operation: list[str]) -> bool:
        match operation:
            case ["put", key, value]:
                self.data[key] = value
            case ["cas", key, old, new]:
                if self.data.get(key) != old:
                    return False
                self.data[key] = new
            case ["meet"]:
                self._rounds.came(sender)
        return True

    async def _do(self, *operation: str | None) -> bool:
        """Send it, and wait until its turn has come here."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._mine[await self._send(*operation)] = done
        return await done

    async def _send(self, *operation: str | None) -> int:
        return (await self._group.send(json.dumps(operation).encode())).number


async def run(group: ordercast.Group) -> None:
    store = Store(group)
    following = asyncio.create_task(store.follow())
    async for line in lines():
        match line.split():
            case ["get", key]:
                print(key, store.data.get(key), flush=True)
            case ["put", key, value]:
                await store.put(key, value)
            case ["cas", key, old, new]:
                won = await store.cas(key, None if old == "-" else old, new)
                print("won" if won else "lost", key, flush=True)
            case ["add", key]:
                await store.add(key)
            case ["sync"]:
                await store.sync()
            case ["meet"]:
                await store.meet()
            case ["dump"]:
                print(json.dumps(store.data, sort_keys=True), flush=True)
            case words:
                print(f"what is {' '.join(words)!r}?", flush=True)
    following.cancel()


async def demo(members: dict[str, Member]) -> None:
    for member in members.values():  # nobody waits for anybody here: all three do this at once
        await member.tell(f"cas leader - {member.name}")
        await member.tell(f"put {member.name} was-here")
        await member.tell(f"put last-writer {member.name}")
        for _ in range(20):
            await member.tell("add counter")
        await member.tell("meet")
        await member.tell("dump")
    said = {name: [await m.hear(), await m.hear()] for name, m in members.items()}
    winners = [name for name, (outcome, _) in said.items() if outcome == "won leader"]
    [data] = {dump for _, dump in said.values()}  # fails if any two replicas differ
    counter = json.loads(data)["counter"]
    print(f"all equal; {winners} won the lead; 3 times 20 additions make {counter}")


if __name__ == "__main__":
    main(__doc__, order="total", run=run, demo=demo)
