"""A text that several people edit at once, on causal order: an RGA (Roh and others 2011).

Every character has an id of its own and says after which other one it was typed. That one must be
known before it, and a character before it is deleted: causal order sees to both, and nothing else
is asked of the network. Characters typed at the same place at the same time are ordered by id, the
same way everywhere; so all replicas converge, without anyone deciding.

    python examples/shared_list.py --demo
    python examples/shared_list.py --me a --peers a=127.0.0.1:7001 b=127.0.0.1:7002 …

Commands on stdin: type PLACE TEXT, delete PLACE COUNT, sync, show. Places are counted from 0.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypeAlias

from demo import Member, Rounds, joining, lines, main

import ordercast

Id: TypeAlias = tuple[int, str]
"""A Lamport clock and a name: later ones are larger, and no two are equal."""
START: Id = (0, "")


class Rga:
    """The data type alone: operations in, in any causal order, and the same text out."""

    def __init__(self) -> None:
        self._cells: list[tuple[Id, str | None]] = [(START, None)]
        """None: deleted. The place is kept, because others may have typed after it."""
        self.clock = 0

    def apply(self, operation: list[Any]) -> None:
        match operation:
            case ["insert", after, id, character]:
                self._insert(_id(after), _id(id), character)
            case ["delete", id]:
                self._cells[self._index(_id(id))] = (_id(id), None)

    def _insert(self, after: Id, id: Id, character: str) -> None:
        self.clock = max(self.clock, id[0])
        place = self._index(after) + 1
        # Whoever typed here later, as far as ids can tell, stands further to the left.
        while place < len(self._cells) and self._cells[place][0] > id:
            place += 1
        self._cells.insert(place, (id, character))

    def _index(self, id: Id) -> int:
        return next(place for place, cell in enumerate(self._cells) if cell[0] == id)

    def ids(self) -> list[Id]:
        """Of what can be seen."""
        return [id for id, character in self._cells if character is not None]

    def __str__(self) -> str:
        return "".join(character for _, character in self._cells if character is not None)


def _id(value: list[Any]) -> Id:
    return value[0], value[1]


class Text:
    """One replica. One's own edits are seen at once, and then travel."""

    def __init__(self, group: ordercast.Group) -> None:
        self.rga = Rga()
        self._group = group
        self._rounds = Rounds(group)

    async def type(self, place: int, text: str) -> None:
        after = [START, *self.rga.ids()][place]
        for character in text:
            id = (self.rga.clock + 1, self._group.me)
            await self._do("insert", after, id, character)
            after = id

    async def delete(self, place: int, count: int) -> None:
        for id in self.rga.ids()[place : place + count]:
            await self._do("delete", id)

    async def sync(self) -> None:
        """What anyone did before it synced as often as we have is here."""
        await self._do("sync")
        await self._rounds.complete()

    async def follow(self) -> None:
        async for delivery in self._group:
            operation = json.loads(delivery.payload)
            if operation == ["sync"]:
                self._rounds.came(delivery.sender)
            elif delivery.sender != self._group.me:
                self.rga.apply(operation)

    async def _do(self, *operation: Any) -> None:
        self.rga.apply([*operation])
        await self._group.send(json.dumps(operation).encode())


async def run(group: ordercast.Group) -> None:
    text = Text(group)
    following = asyncio.create_task(text.follow())
    async for line in lines():
        match line.split(" ", 2):
            case ["type", place, what]:
                await text.type(int(place), what)
            case ["delete", place, count]:
                await text.delete(int(place), int(count))
            case ["sync"]:
                await text.sync()
            case ["show"]:
                print(str(text.rga), flush=True)
            case words:
                print(f"what is {' '.join(words)!r}?", flush=True)
    following.cancel()


async def demo(members: dict[str, Member]) -> None:
    a, b, c = members.values()
    await a.tell("type 0 the fox jumps")
    for member in members.values():
        await member.tell("sync")
    await a.tell("type 4 quick ")  # all three at once, two of them at the same place
    await b.tell("type 4 brown ")
    await c.tell("delete 0 3")
    await c.tell("type 0 One")
    for member in members.values():
        await member.tell("sync")
        await member.tell("show")
    [text] = {await member.hear() for member in members.values()}  # fails if any two differ
    print(f"all three have: {text}")


if __name__ == "__main__":
    main(__doc__, member=joining("causal", run), demo=demo)
