"""Groups of nodes in one loop, a proxy that cuts connections, and what every test asks of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from random import Random

from ordercast.oracle import judge
from ordercast.protocols import catalog
from ordercast.protocols.messages import Message
from ordercast.runtime.node import Node
from ordercast.runtime.rest import at_rest
from ordercast.runtime.weather import Weather
from ordercast.trace import Event, Manifest, Recorder, Trace

RUN = "test"


async def until(condition: Callable[[], bool], *, within_s: float = 20) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 (no one could set an event for all of them)
            await asyncio.sleep(0.005)


class Group:
    """Nodes of one group, each with what it delivered; all events in one list."""

    def __init__(
        self,
        ordering: str,
        size: int,
        *,
        dissemination: str | None = None,
        weather: Weather | None = None,
        seed: int = 0,
    ) -> None:
        self.ordering = ordering
        self.dissemination = dissemination or catalog.choose(ordering)[1]
        self.events: list[Event] = []
        self.delivered: list[list[Message]] = [[] for _ in range(size)]
        self.ports: dict[int, int] = {}
        self.nodes = [
            Node(
                catalog.build(ordering, self.dissemination, me, size),
                run=RUN,
                recorder=Recorder(
                    RUN, me, write=self.events.append, clock_us=lambda: time.time_ns() // 1000
                ),
                on_deliver=self.delivered[me].append,
                weather=weather,
                seed=seed,
            )
            for me in range(size)
        ]

    async def listen(self) -> None:
        self.ports = {me: await node.listen() for me, node in enumerate(self.nodes)}

    def dial(self) -> None:
        for node in self.nodes:
            node.dial(self.ports)

    def everyone_present(self) -> bool:
        return all(len(node.present) == len(self.nodes) - 1 for node in self.nodes)

    def resting(self) -> bool:
        counters = {me: node.counters() for me, node in enumerate(self.nodes)}
        return at_rest(counters, counters)

    async def exchange(self, messages: int, *, seed: int = 0, pause_s: float = 0.002) -> None:
        """Everyone sends at once, unevenly; over when all is sent."""

        async def send_all(me: int) -> None:
            random = Random(f"{seed}/{me}")
            others = [other for other in range(len(self.nodes)) if other != me]
            to_one = catalog.ORDERINGS[self.ordering].destinations == "one"
            for number in range(1, messages + 1):
                to = [random.choice(others)] if to_one else None
                await self.nodes[me].send(b"p%d #%d" % (me, number), to)
                await asyncio.sleep(random.uniform(0, 2 * pause_s))
            self.nodes[me].sending_ends()

        await asyncio.gather(*(send_all(me) for me in range(len(self.nodes))))

    def violations(self, *, quiesced: bool = True) -> list[str]:
        """What the oracle has against this run, judged by what the catalog promises for it."""
        promises = catalog.promises(self.ordering, self.dissemination, crashes=False)
        names = tuple(f"p{me}" for me in range(len(self.nodes)))
        trace = Trace.of(Manifest(RUN, names, quiesced=quiesced), self.events)
        return [
            f"{verdict.property} {verdict.verdict} ({verdict.violations} of {verdict.checked})"
            for verdict in judge(trace, promises)
            if verdict.verdict != "holds" or verdict.checked == 0
        ]


@contextlib.asynccontextmanager
async def group(
    ordering: str,
    size: int,
    *,
    dissemination: str | None = None,
    weather: Weather | None = None,
    seed: int = 0,
) -> AsyncIterator[Group]:
    """A group that has come together."""
    members = Group(ordering, size, dissemination=dissemination, weather=weather, seed=seed)
    try:
        await members.listen()
        members.dial()
        await until(members.everyone_present)
        yield members
    finally:
        await asyncio.gather(*(node.aclose() for node in members.nodes))
        assert not [node for node in members.nodes if not node.failure.cancelled()]
