"""Streams for tests: what a group sends, in causal order, and then in any other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa

from ordercast.pipeline.streaming.form import Form

from .oracle import Message

ARRAY = pa.schema(
    [
        ("room", pa.string()), ("origin", pa.int32()), ("number", pa.int64()),
        ("stamp", pa.list_(pa.int64())), ("label", pa.int64()),
    ]
)  # fmt: skip
FORM = Form(group=("room",), number="number", origin="origin", stamp="stamp", needs="array")


def sent(random: Random, *, groups: int, origins: int, messages: int) -> list[Message]:
    """What random members of random groups send, each after hearing some of the others: with
    vectors of counts as needs."""
    heard = {(g, o): [0] * origins for g in range(groups) for o in range(origins)}
    last = {g: {} for g in range(groups)}  # type: dict[int, dict[tuple[int, int], list[int]]]
    out = []
    for label in range(messages):
        group, origin = random.randrange(groups), random.randrange(origins)
        mine = heard[group, origin]
        for other in random.sample(list(last[group].values()), k=len(last[group]) // 2):
            mine[:] = map(max, mine, other)
        mine[origin] += 1
        last[group][origin, mine[origin]] = list(mine)
        needs = tuple((o, n) for o, n in enumerate(mine) if o != origin)
        out.append(Message(f"g{group}", origin, mine[origin], needs, label))
    return out


def shuffled(random: Random, messages: Sequence[Message], *, reach: int) -> list[Message]:
    """Each comes up to `reach` places later than it was sent."""
    late = [(at + random.randrange(reach + 1), at) for at in range(len(messages))]
    return [messages[at] for _, at in sorted(late)]


def record(message: Message, *, width: int) -> dict[str, Any]:
    stamp = dict(message.needs) | {message.origin: message.number}
    return {
        "room": message.group, "origin": message.origin, "number": message.number,
        "stamp": [stamp.get(o, 0) for o in range(width)], "label": message.label,
    }  # fmt: skip


def table(messages: Sequence[Message], *, width: int) -> pa.Table:
    return pa.Table.from_pylist([record(m, width=width) for m in messages], ARRAY)


def split(random: Random, messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Batches of any size."""
    cuts = sorted(random.randrange(len(messages) + 1) for _ in range(random.randrange(6)))
    ends = [0, *cuts, len(messages)]
    return [messages[a:b] for a, b in pairwise(ends) if b > a]
