"""A whole group in one process: protocol objects, and a small network in memory between them.

Nothing is recorded, encoded or drawn, so nearly all the time goes to the protocols. Packets
overtake each other at will (unless the ordering needs FIFO links), but only so many messages are
under way at once. Time is counted in packets: each takes `packet_us`, and timers run by that clock.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

from ordercast.protocols import catalog
from ordercast.protocols.effects import Deliver, HostEffect, StartTimer, Transmit

__all__ = ["Group", "Input"]


class Input(NamedTuple):
    """Something that happened to a member. Protocols are pure: told again, it does the same."""

    process: int
    method: str
    arguments: tuple[Any, ...]


class Group:
    def __init__(
        self,
        ordering: str,
        dissemination: str,
        size: int,
        *,
        subsets: bool = False,
        seed: int = 0,
        packet_us: int = 100,
    ) -> None:
        """`subsets`: half of the messages go to some only, if the algorithms allow it."""
        self.stacks = [catalog.build(ordering, dissemination, me, size) for me in range(size)]
        self.size = size
        self.packet_us = packet_us
        self.now_us = 0
        self.sent = self.packets = self.delivered = 0
        self.addressed = 0
        """Deliveries that there will be once all is at rest."""
        self.script: list[Input] | None = None
        """If there is a list here, every input is noted in it."""
        self._random = Random(seed)
        layers = self.stacks[0].ordering, self.stacks[0].dissemination
        self._to_one = layers[0].destinations == "one"
        self._to_some = subsets and all(layer.destinations == "any" for layer in layers)
        self._fifo = self.stacks[0].ordering.needs_fifo
        self._links: dict[tuple[int, int], deque[Any]] = {
            (source, to): deque() for source in range(size) for to in range(size)
        }
        self._under_way: list[tuple[int, int, Any]] = []
        self._timers: list[tuple[int, int, str]] = []
        self._due_us: dict[tuple[int, str], int] = {}
        for process, stack in enumerate(self.stacks):
            self._perform(process, stack.start())

    def send(self, payload: bytes = b"") -> None:
        """The processes take turns."""
        process = self.sent % self.size
        to = self._destinations()
        self.sent += 1
        self.addressed += self.size if to is None else len(to)
        _, effects = self._input(process, "send", payload, to)
        self._perform(process, effects)

    def _destinations(self) -> list[int] | None:
        if self._to_one:
            return [self._random.randrange(self.size)]
        if self._to_some and self._random.random() < 0.5:
            return self._random.sample(range(self.size), self._random.randint(1, self.size))
        return None

    def run(self, packets: int, *, window: int = 16) -> None:
        """Until so many more packets have been handled, send whenever fewer than about `window`
        messages are on their way."""
        until = self.packets + packets
        deliveries = window if self._to_one else window * self.size
        while self.packets < until:
            if self.addressed - self.delivered < deliveries:
                self.send()
            self._step()

    def rest(self) -> None:
        """Let everything that is under way arrive, and all timers run out."""
        while self._under_way or self._timers:
            self._step()

    def _step(self) -> None:
        self.now_us += self.packet_us
        if self._under_way:
            self.packets += 1
            source, to, packet = self._next()
            self._perform(to, self._input(to, "receive", source, packet))
        elif self._timers:
            self.now_us = max(self.now_us, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self.now_us:
            due_us, process, name = heapq.heappop(self._timers)
            if self._due_us.get((process, name)) == due_us:  # otherwise it has been replaced
                self._perform(process, self._input(process, "timer", name))

    def _input(self, process: int, method: str, *arguments: Any) -> Any:
        if self.script is not None:
            self.script.append(Input(process, method, arguments))
        return getattr(self.stacks[process], method)(*arguments)

    def _next(self) -> tuple[int, int, Any]:
        """Any packet; or the oldest on any link, if links keep their order."""
        under_way = self._under_way
        index = int(self._random.random() * len(under_way))
        under_way[index], under_way[-1] = under_way[-1], under_way[index]
        source, to, packet = under_way.pop()
        return source, to, self._links[source, to].popleft() if self._fifo else packet

    def _perform(self, process: int, effects: Iterable[HostEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                for to in effect.to:
                    self._under_way.append((process, to, effect.packet))
                    if self._fifo:
                        self._links[process, to].append(effect.packet)
            elif isinstance(effect, Deliver):
                self.delivered += 1
            elif isinstance(effect, StartTimer):
                due_us = self._due_us[process, effect.name] = self.now_us + effect.delay_us
                heapq.heappush(self._timers, (due_us, process, effect.name))
