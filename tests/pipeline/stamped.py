"""Random histories of stamped messages, and what causal order means for them, word by word."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

__all__ = ["Message", "as_rows", "breaks", "contradicts", "history", "is_known"]


class Message(NamedTuple):
    group: int
    origin: int
    number: int
    stamp: tuple[int, ...]
    """The own entry is the number."""


def history(rng: random.Random, group: int, size: int, count: int) -> list[Message]:
    """Messages of a group in which everyone delivers in causal order, at any pace."""
    sent: list[Message] = []
    known = [[0] * size for _ in range(size)]
    for _ in range(count):
        me = rng.randrange(size)
        for message in sent:
            if rng.random() < 0.3 and _ready(message, known[me]):
                known[me][message.origin] = message.number
        known[me][me] += 1
        sent.append(Message(group, me, known[me][me], tuple(known[me])))
    return sent


def _ready(message: Message, known: list[int]) -> bool:
    others = (
        count <= known[origin]
        for origin, count in enumerate(message.stamp)
        if origin != message.origin
    )
    return known[message.origin] == message.number - 1 and all(others)


def is_known(message: Message, to: Message) -> bool:
    """Does the one say that it knows the other?"""
    same = (message.group, message.origin, message.number) == (to.group, to.origin, to.number)
    return message.group == to.group and not same and to.stamp[message.origin] >= message.number


def breaks(ordered: Sequence[Message]) -> set[Message]:
    """Those that come after a message which knows them."""
    return {
        late
        for place, late in enumerate(ordered)
        if any(is_known(late, to=early) for early in ordered[:place])
    }


def contradicts(messages: Iterable[Message]) -> bool:
    """Is there a stamp that knows a message, the last one of its origin, and not all it knew?"""
    found = {(m.group, m.origin, m.number): m for m in messages}
    for message in found.values():
        for origin, count in enumerate(message.stamp):
            last = count - (origin == message.origin)
            other = found.get((message.group, origin, last))
            if other is not None and any(
                one > two for one, two in zip(other.stamp, message.stamp, strict=True)
            ):
                return True
    return False


def as_rows(messages: Iterable[Message], *, named: bool = False) -> list[dict[str, Any]]:
    """Rows for Spark: stamps as lists, or as maps of names, some without own entry."""
    return [
        {
            "group": message.group,
            "origin": f"p{message.origin}" if named else message.origin,
            "number": message.number,
            "stamp": {
                f"p{origin}": count
                for origin, count in enumerate(message.stamp)
                if count and (origin != message.origin or message.number % 2)
            }
            if named
            else [count - (i == message.origin) for i, count in enumerate(message.stamp)]
            if message.number % 3 == 0  # what was delivered before it was sent
            else list(message.stamp),
            "text": f"{message.group}/{message.origin}/{message.number}",
        }
        for message in messages
    ]
