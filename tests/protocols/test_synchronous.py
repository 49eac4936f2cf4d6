"""Nobody can keep a process so busy that its own messages never leave."""

from __future__ import annotations

from collections import deque
from typing import Any

from ordercast.protocols import catalog
from ordercast.protocols.effects import Accept, HostEffect, Transmit


def test_others_cannot_starve_a_sender() -> None:
    stacks = [catalog.build("synchronous", "direct", me, 3) for me in range(3)]
    under_way: deque[tuple[int, int, Any]] = deque()
    left: list[int] = []

    def perform(process: int, effects: list[HostEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                under_way.extend((process, to, effect.packet) for to in effect.to)
            elif isinstance(effect, Accept):
                left.append(process)

    for _ in range(20):
        for sender in (0, 1):
            perform(sender, stacks[sender].send(b"", [2])[1])
    perform(2, stacks[2].send(b"", [0])[1])
    while under_way:
        source, to, packet = under_way.popleft()
        perform(to, stacks[to].receive(source, packet))
    assert left.count(0) == left.count(1) == 20
    assert left.index(2) < 4, "p2 waited for the whole queue of the others"
