"""A chat where no reply precedes its question, on causal order.

Whoever replies has seen the question; so everyone else sees the question first, whichever way the
two have travelled. Lines that answer nothing may come in different orders at different people:
that is what makes causal order cheaper than total order, and enough for a conversation.

    python examples/chat.py --demo
    python examples/chat.py --me a --peers a=127.0.0.1:7001 b=127.0.0.1:7002 c=127.0.0.1:7003

A line is said to everyone; `/re ID text` replies to one; `/sync` waits until all have synced.
"""

from __future__ import annotations

import asyncio
import json

from demo import Member, Rounds, joining, lines, main

import ordercast

SYNC = "sync"
QUESTIONS = 6
"""In the demonstration."""


class Chat:
    def __init__(self, group: ordercast.Group) -> None:
        self.seen: set[str] = set()
        self._group = group
        self._rounds = Rounds(group)

    async def say(self, text: str, reply_to: str | None = None) -> None:
        if reply_to is not None and reply_to not in self.seen:
            print(f"nobody here has said {reply_to}", flush=True)
            return
        await self._send({"text": text, "reply_to": reply_to})

    async def sync(self) -> None:
        """What anyone said before it synced as often as we have is on the screen."""
        await self._send(SYNC)
        await self._rounds.complete()
        print("synced", flush=True)

    async def follow(self) -> None:
        async for delivery in self._group:
            line = json.loads(delivery.payload)
            if line == SYNC:
                self._rounds.came(delivery.sender)
            else:
                self._show(delivery.id, line["text"], line["reply_to"])

    def _show(self, id: str, text: str, reply_to: str | None) -> None:
        self.seen.add(id)
        if reply_to is None:
            print(f"{id} {text}", flush=True)
        elif reply_to in self.seen:
            print(f"{id} (to {reply_to}) {text}", flush=True)
        else:  # causal order says that this cannot happen
            print(f"{id} REPLIES TO WHAT NOBODY HAS SAID: {reply_to}", flush=True)

    async def _send(self, line: object) -> None:
        await self._group.send(json.dumps(line).encode())


async def run(group: ordercast.Group) -> None:
    chat = Chat(group)
    following = asyncio.create_task(chat.follow())
    async for line in lines():
        match line.split(" ", 2):
            case ["/sync"]:
                await chat.sync()
            case ["/re", id, text]:
                await chat.say(text, reply_to=id)
            case _:
                await chat.say(line)
    following.cancel()


async def demo(members: dict[str, Member]) -> None:
    """Each asks twice; everyone answers whatever the others ask, as soon as they see it."""
    for member in members.values():
        for number in (1, 2):
            await member.tell(f"question {number} of {member.name}?")
    screens = await asyncio.gather(*(answer(member) for member in members.values()))
    for screen in screens:
        places = {line.split()[0]: place for place, line in enumerate(screen)}
        for line in screen:
            id, to, question, *_ = line.split()
            if to == "(to":
                assert places[question.rstrip(")")] < places[id], f"{id} came too early"
    replies = sum(" (to " in line for line in screens[0])
    print(f"{replies} replies, none before its question")


async def answer(member: Member) -> list[str]:
    """What was on this one's screen, until everyone has answered everything."""
    screen: list[str] = []
    questions = 0
    while (line := await member.hear()) != "synced":
        screen.append(line)
        id = line.split()[0]
        if line.endswith("?"):
            questions += 1
            if not id.startswith(member.name):
                await member.tell(f"/re {id} here is what {member.name} thinks")
            if questions == QUESTIONS:
                await member.tell("/sync")
    return screen


if __name__ == "__main__":
    main(__doc__, member=joining("causal", run), demo=demo)
