"""Groups of nodes in one loop, a proxy that cuts connections, and what every test asks of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from random import Random

from ordercast.oracle import judge
from ordercast.protocols import catalog
from ordercast.runtime import group as groups
from ordercast.runtime.core import Core
from ordercast.runtime.discovery import Address
from ordercast.runtime.door import Door
from ordercast.runtime.group import Delivery
from ordercast.runtime.node import HOST, Node
from ordercast.runtime.rest import at_rest
from ordercast.runtime.settings import Settings
from ordercast.runtime.weather import Weather
from ordercast.trace import Event, Manifest, Trace
from ordercast.trace.spans import Span, rows_of

RUN = "test"
CHARTER = "whatever the test says"


class Rows:
    """A log in memory."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.events: list[Event] = []

    def write(self, spans: Iterable[Span]) -> None:
        for span in spans:
            place = len(self.events)
            self.events += rows_of(span, run=RUN, process=self.process, position=place)


async def until(condition: Callable[[], bool], *, within_s: float = 20) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 (no one could set an event for all of them)
            await asyncio.sleep(0.005)


class Group:
    """Members of one group, each with what it delivered; all events in one list."""

    def __init__(
        self,
        ordering: str,
        size: int,
        *,
        dissemination: str | None = None,
        weather: Weather | None = None,
        seed: int = 0,
        settings: Settings | None = None,
    ) -> None:
        self.ordering = ordering
        self.dissemination = dissemination or catalog.choose(ordering)[1]
        self.delivered: list[list[Delivery]] = [[] for _ in range(size)]
        self.ports: dict[int, int] = {}
        self.logs = [Rows(me) for me in range(size)]
        names = tuple(f"p{me}" for me in range(size))
        self.doors = [Door(RUN, name) for name in names]
        self.nodes = [
            Node(
                Core(catalog.build(ordering, self.dissemination, me, size), life=f"life of {me}"),
                door=self.doors[me],
                names=names,
                charter=CHARTER,
                settings=settings,
                log=self.logs[me],
                weather=weather,
                seed=seed,
            )
            for me in range(size)
        ]
        uniform = catalog.uniform(self.ordering, self.dissemination)
        self.members = [
            groups.Group(node, name=RUN, algorithm=CHARTER, uniform=uniform) for node in self.nodes
        ]
        self.readers: list[asyncio.Task[None]] = []

    @property
    def events(self) -> list[Event]:
        return [event for log in self.logs for event in log.events]

    async def listen(self) -> None:
        for me, (door, node) in enumerate(zip(self.doors, self.nodes, strict=True)):
            self.ports[me] = (await door.open(HOST)).port
            node.start()
            self.readers.append(asyncio.create_task(self._read(me)))

    async def _read(self, me: int) -> None:
        async for delivery in self.members[me]:
            self.delivered[me].append(delivery)

    def dial(self) -> None:
        for node in self.nodes:
            node.dial({me: Address(HOST, port) for me, port in self.ports.items()})

    async def aclose(self) -> None:
        await asyncio.gather(*(node.aclose() for node in self.nodes))
        await asyncio.gather(*self.readers, return_exceptions=True)  # a failed node says so

    def everyone_present(self) -> bool:
        return all(len(node.company.present) == len(self.nodes) - 1 for node in self.nodes)

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
                to = [f"p{random.choice(others)}"] if to_one else None
                await self.members[me].send(b"p%d #%d" % (me, number), to)
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
    settings: Settings | None = None,
) -> AsyncIterator[Group]:
    """A group that has come together."""
    members = Group(
        ordering,
        size,
        dissemination=dissemination,
        weather=weather,
        seed=seed,
        settings=settings,
    )
    try:
        await members.listen()
        members.dial()
        await until(members.everyone_present)
        yield members
    finally:
        await members.aclose()
        assert not [node for node in members.nodes if not node.failure.cancelled()]
