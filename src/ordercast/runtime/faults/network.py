"""The ways between members, each through a proxy of its own that does what the plan says.

Of each two members the higher one dials the lower one; it is told the proxy's port instead. The
proxy only moves bytes: it knows nothing of frames, and would not mind if they were encrypted.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Sequence
from itertools import combinations, permutations
from random import Random
from typing import TypeVar

from msgspec import Struct

from ordercast.errors import UsageError
from ordercast.runtime.faults.cable import Cable
from ordercast.runtime.faults.kinds import Delay, Faults, Loss, Partition
from ordercast.runtime.node import HOST

__all__ = ["Network", "Parting", "Traffic", "check_room"]

H = TypeVar("H", Delay, Loss)

FILES_BESIDES = 300
"""For the pipes to the members, redials, and whatever else is open."""
BREAKS_ON_HEALING = 0.5
"""How likely a connection that was stalled by a partition does not survive it."""


class Parting(Struct):
    """When nothing passed between the sides, by the clock of the trace."""

    sides: str
    start_us: int
    end_us: int | None = None
    """None: until the end."""


class Traffic(Struct):
    """What has gone through the proxies."""

    connections: int = 0
    bytes: int = 0
    lost: int = 0
    """Connections broken by a loss."""
    parted: int = 0
    """Connections that a partition stalled for good."""


def check_room(processes: int) -> None:
    """Each pair takes a listening socket, and two for its connection."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * processes * (processes - 1) // 2 + FILES_BESIDES
    if needed > allowed != resource.RLIM_INFINITY:
        raise UsageError(
            f"proxies between {processes} processes need {needed} open files, and {allowed} are "
            f"allowed: choose fewer processes, or allow more with 'ulimit -n {needed}'"
        )


class Network:
    def __init__(self, faults: Faults, processes: int, *, seed: int) -> None:
        self.traffic = Traffic()
        self._began: float | None = None
        self.partings: list[Parting] = []
        """Those there have been."""
        self._partitions: list[tuple[Partition, Parting]] = []
        """Those of now."""
        ways = permutations(range(processes), 2)
        self._ways = {link: _Way(self, faults, link, seed=seed) for link in ways}
        self._proxies: dict[tuple[int, int], _Proxy] = {}

    async def open(self, ports: Sequence[int]) -> None:
        """A proxy in front of every member for each who dials it. `ports`: where they listen."""
        for low, high in combinations(range(len(ports)), 2):
            out, back = self._ways[high, low], self._ways[low, high]
            proxy = self._proxies[low, high] = _Proxy(ports[low], out, back, self.traffic)
            await proxy.open()

    def ports_for(self, me: int, ports: Sequence[int]) -> tuple[int, ...]:
        """Where this member reaches the others."""
        return tuple(
            self._proxies[peer, me].port if peer < me else port for peer, port in enumerate(ports)
        )

    def begin(self) -> None:
        """Until now the network was perfect, so that the members could meet."""
        self._began = asyncio.get_running_loop().time()

    @property
    def now_us(self) -> int | None:
        """Since the beginning; None before."""
        if self._began is None:
            return None
        return int((asyncio.get_running_loop().time() - self._began) * 1e6)

    def part(self, partition: Partition) -> None:
        self.partings.append(Parting(partition.between, time.time_ns() // 1000))
        self._partitions.append((partition, self.partings[-1]))
        for link, way in self._ways.items():
            way.cut = self._is_cut(*link)

    def heal(self, partition: Partition) -> None:
        """What was stalled goes on or turns out to be broken; chance decides for each."""
        place = next(i for i, (one, _) in enumerate(self._partitions) if one == partition)
        self._partitions.pop(place)[1].end_us = time.time_ns() // 1000
        for (low, high), proxy in self._proxies.items():
            for link in ((low, high), (high, low)):
                self._ways[link].cut = self._is_cut(*link)
            if partition.cuts(low, high) and not self._is_cut(low, high):
                proxy.heal()

    async def aclose(self) -> None:
        for proxy in self._proxies.values():
            await proxy.aclose()

    def _is_cut(self, source: int, to: int) -> bool:
        return any(partition.cuts(source, to) for partition, _ in self._partitions)


class _Way:
    """From one member to another: the plan's habits, as they are now."""

    def __init__(
        self, network: Network, faults: Faults, link: tuple[int, int], *, seed: int
    ) -> None:
        source, to = link
        self.random = Random(f"{seed}/{source}>{to}/network")
        self.cut = False
        self._network = network
        own = [habit for habit in reversed(faults.habits) if habit.link in (None, link)]
        self._delays = [habit for habit in own if isinstance(habit, Delay)]
        self._losses = [habit for habit in own if isinstance(habit, Loss)]

    def delay_s(self) -> float:
        delay = self._of_now(self._delays)
        if delay is None:
            return 0.0
        jitter_us = self.random.uniform(-delay.jitter_us, delay.jitter_us)
        return (delay.mean_us + jitter_us) / 1e6

    def loses(self) -> bool:
        loss = self._of_now(self._losses)
        return loss is not None and self.random.random() * 1e6 < loss.ppm

    def lost(self) -> None:
        self._network.traffic.lost += 1

    def carried(self, size: int) -> None:
        self._network.traffic.bytes += size

    def _of_now(self, habits: list[H]) -> H | None:
        now_us = self._network.now_us
        if now_us is None:
            return None
        return next((habit for habit in habits if habit.span.holds_at(now_us)), None)


class _Proxy:
    """Listens in the place of one member for one other."""

    def __init__(self, target_port: int, out: _Way, back: _Way, traffic: Traffic) -> None:
        self.port = 0
        self._target_port = target_port
        self._out = out
        self._back = back
        self._traffic = traffic
        self._server: asyncio.Server | None = None
        self._cables: dict[Cable, None] = {}
        """Oldest first: chance decides for one after the other."""
        self._unplugged: list[Cable] = []
        """Dialled during a partition: their inner ends have yet to be connected."""
        self._plugging: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._dialled, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def heal(self) -> None:
        unplugged, self._unplugged = self._unplugged, []
        for cable in list(self._cables):
            if self._out.random.random() < BREAKS_ON_HEALING:
                self._traffic.parted += 1
                cable.snap()
            elif cable in unplugged:
                self._plug_in(cable)
            else:
                cable.pump()

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._plugging:
            task.cancel()
        await asyncio.gather(*self._plugging, return_exceptions=True)
        for cable in list(self._cables):
            cable.snap()
        if self._server is not None:
            await self._server.wait_closed()

    def _dialled(self) -> asyncio.Protocol:
        cable = Cable(out=self._out, back=self._back, on_gone=self._cables.pop)
        self._cables[cable] = None
        self._traffic.connections += 1
        if self._out.cut:
            self._unplugged.append(cable)
        else:
            self._plug_in(cable)
        return cable.outer

    def _plug_in(self, cable: Cable) -> None:
        task = asyncio.create_task(self._connect(cable))
        self._plugging.add(task)
        task.add_done_callback(self._plugging.discard)

    async def _connect(self, cable: Cable) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: cable.inner, HOST, self._target_port)
        except OSError:  # nobody is there
            cable.inner.abort()
