"""The proxies between members: what really happens to bytes, and that links survive it."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import AsyncIterator, Callable

import pytest

from ordercast.errors import UsageError
from ordercast.runtime.discovery import Address
from ordercast.runtime.faults import Network, cable, parse_faults
from ordercast.runtime.faults.kinds import Partition, Span
from ordercast.runtime.faults.network import check_room
from ordercast.runtime.node import HOST
from ordercast.runtime.settings import Settings

from .helpers import Group, until

pytestmark = pytest.mark.timeout(120)

PARTED = Partition(((0,), (1,)), Span(0, 1))
"""By hand: the network is told when it begins and ends."""


class End(asyncio.Protocol):
    """One side of a connection: what has come in so far, and whether that was all."""

    def __init__(self, on_made: Callable[[End], None]) -> None:
        self.got = b""
        self.arrived_at: list[float] = []
        self.over = False
        self.transport: asyncio.Transport
        self._on_made = on_made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._on_made(self)

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.arrived_at.append(asyncio.get_running_loop().time())

    def connection_lost(self, error: Exception | None) -> None:
        self.over = True


class Wire:
    """Process 0 listens, and process 1 dials it through a proxy."""

    def __init__(self, faults: str, seed: int) -> None:
        self.network = Network(parse_faults(faults), 2, seed=seed)
        self.accepted: asyncio.Queue[End] = asyncio.Queue()
        self.ends: list[End] = []
        self._server: asyncio.Server
        self._port: int

    async def open(self, *, listens: bool) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: End(self._accept), HOST, 0)
        ports = (self._server.sockets[0].getsockname()[1], 1)
        await self.network.open(ports)
        self._port = self.network.ports_for(1, ports)[0]
        if not listens:
            self._server.close()

    async def dial(self) -> End:
        loop = asyncio.get_running_loop()
        _, end = await loop.create_connection(lambda: End(self.ends.append), HOST, self._port)
        return end

    async def connect(self) -> tuple[End, End]:
        """Who dialled, and the other."""
        outer = await self.dial()
        async with asyncio.timeout(20):
            return outer, await self.accepted.get()

    async def aclose(self) -> None:
        self._server.close()
        await self.network.aclose()
        await until(lambda: all(end.over for end in self.ends))

    def _accept(self, end: End) -> None:
        self.ends.append(end)
        self.accepted.put_nowait(end)


@contextlib.asynccontextmanager
async def wire(
    faults: str = "delay:0s", *, seed: int = 0, begins: bool = True, listens: bool = True
) -> AsyncIterator[Wire]:
    """At the end nothing is left of any connection."""
    found = Wire(faults, seed)
    await found.open(listens=listens)
    if begins:
        found.network.begin()
    try:
        yield found
    finally:
        await found.aclose()


def write(end: End, data: bytes) -> None:
    end.transport.write(data)


def test_who_dials_whom() -> None:
    async def scenario() -> None:
        network = Network(parse_faults("loss:1%"), 3, seed=0)
        ports = (1001, 1002, 1003)
        await network.open(ports)
        one, two = network.ports_for(1, ports), network.ports_for(2, ports)
        await network.aclose()
        assert network.ports_for(0, ports) == ports, "it dials nobody"
        assert one[1:] == ports[1:]
        assert two[2] == ports[2]
        assert len({one[0], two[0], two[1], *ports}) == 6, "each pair has a proxy of its own"

    asyncio.run(scenario())


def test_a_group_too_large_for_this_shell_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    check_room(20)
    with pytest.raises(UsageError, match=r"need 2640 open files, and 1024 are allowed"):
        check_room(40)


def test_bytes_pass_both_ways_and_so_does_the_end() -> None:
    async def scenario() -> None:
        async with wire() as w:
            outer, inner = await w.connect()
            large = bytes(range(256)) * 20_000
            write(outer, large)
            write(inner, b"and back")
            await until(lambda: inner.got == large and outer.got == b"and back")
            write(outer, b"the last")
            outer.transport.close()
            await until(lambda: inner.over)
            assert inner.got.endswith(b"the last")
            assert w.network.traffic.bytes == len(large) + 16

    asyncio.run(scenario())


def test_nobody_at_the_other_end_is_told_to_who_dials() -> None:
    async def scenario() -> None:
        async with wire(listens=False) as w:
            end = await w.dial()
            await until(lambda: end.over)

    asyncio.run(scenario())


def test_a_partition_stops_every_byte_and_the_end_of_a_connection_too() -> None:
    async def scenario(seed: int) -> str:
        async with wire(seed=seed) as w:
            outer, inner = await w.connect()
            write(outer, b"before")
            await until(lambda: inner.got == b"before")
            w.network.part(PARTED)
            write(outer, b" during")
            write(inner, b"hello?")
            late = await w.dial()
            write(late, b"let me in")
            inner.transport.close()
            await asyncio.sleep(0.3)
            assert (inner.got, outer.got, late.got) == (b"before", b"", b"")
            assert not outer.over
            assert not late.over
            assert w.accepted.empty()
            w.network.heal(PARTED)
            await until(lambda: outer.over)
            assert outer.got in (b"", b"hello?")
            await until(lambda: late.over or not w.accepted.empty())
            if not late.over:
                second = await w.accepted.get()
                await until(lambda: second.got == b"let me in")
            assert w.network.traffic.parted == (not outer.got) + late.over
            return f"{bool(outer.got)} {late.over}"

    seen = {asyncio.run(scenario(seed)) for seed in range(12)}
    assert len(seen) >= 3, "some connections survive, and some do not"
    assert asyncio.run(scenario(3)) == asyncio.run(scenario(3)), "the seed decides"


def test_overlapping_partitions_heal_when_the_last_one_does() -> None:
    async def scenario(seed: int) -> bool:
        async with wire(seed=seed) as w:
            outer, inner = await w.connect()
            w.network.part(PARTED)
            w.network.part(PARTED)
            write(outer, b"x")
            w.network.heal(PARTED)
            await asyncio.sleep(0.2)
            assert (inner.got, inner.over) == (b"", False)
            w.network.heal(PARTED)
            await until(lambda: bool(inner.got) or inner.over)
            return inner.over

    assert {asyncio.run(scenario(seed)) for seed in range(6)} == {True, False}


def test_a_stalled_connection_holds_only_so_much() -> None:
    async def scenario() -> None:
        async with wire() as w:
            outer, inner = await w.connect()
            w.network.part(PARTED)
            flood = bytes(64 * 2**20)
            write(outer, flood)
            await asyncio.sleep(0.5)
            waiting = outer.transport.get_write_buffer_size()
            assert waiting > len(flood) // 2, "the sender has to keep what does not pass"
            assert inner.got == b""
            outer.transport.abort()

    asyncio.run(scenario())


def test_a_delay_holds_back_and_keeps_the_order() -> None:
    async def scenario() -> None:
        async with wire("delay:1>0=300ms±100ms") as w:
            outer, inner = await w.connect()
            loop = asyncio.get_running_loop()
            sent_at = []
            for number in range(10):
                sent_at.append(loop.time())
                write(outer, b"%d" % number)
                await asyncio.sleep(0.03)
            await until(lambda: inner.got == b"0123456789")
            assert inner.arrived_at[0] - sent_at[0] >= 0.2
            assert inner.arrived_at[-1] - sent_at[-1] >= 0.2

    asyncio.run(scenario())


def test_a_delay_of_one_link_for_a_time_leaves_the_rest_alone() -> None:
    async def scenario() -> None:
        async with wire("delay:1>0=30s@0s+500ms") as w:
            outer, inner = await w.connect()
            write(inner, b"quick")
            await until(lambda: outer.got == b"quick")
            write(outer, b"slow")
            await asyncio.sleep(0.3)
            assert inner.got == b""
            await asyncio.sleep(0.4)
            other, its_inner = await w.connect()
            write(other, b"the time is over")
            await until(lambda: its_inner.got == b"the time is over")
            assert inner.got == b"", "what was delayed before stays so"

    asyncio.run(scenario())


def test_a_loss_breaks_the_connection_with_bytes_missing() -> None:
    async def scenario(seed: int) -> int:
        """One chunk at a time, so that chance has the same chunks to decide about each time."""
        async with wire("loss:1>0=20%", seed=seed) as w:
            outer, inner = await w.connect()
            for number in range(200):
                write(outer, b"0123456789")
                await until(lambda n=number: len(inner.got) == 10 * (n + 1) or inner.over)
                if inner.over:
                    break
            await until(lambda: outer.over and inner.over)
            assert w.network.traffic.lost == 1
            assert 10 * number <= len(inner.got) < 10 * (number + 1), "a part of the lost chunk"
            return number

    broke_at = [asyncio.run(scenario(seed)) for seed in range(8)]
    assert len(set(broke_at)) > 2
    assert asyncio.run(scenario(5)) == broke_at[5], "the seed decides"


def test_before_it_begins_the_network_is_perfect() -> None:
    async def scenario() -> None:
        async with wire("loss:50%,delay:60s", begins=False) as w:
            outer, inner = await w.connect()
            for number in range(50):
                write(outer, b"x")
                await until(lambda n=number: len(inner.got) == n + 1)

    asyncio.run(scenario())


async def exchange_through(network: Network, members: Group, messages: int) -> None:
    """Everyone meets through the proxies, sends, and comes to rest."""
    try:
        await members.listen()
        ports = [members.ports[me] for me in range(3)]
        await network.open(ports)
        for node in members.nodes:
            told = network.ports_for(node.me, ports)
            node.dial({me: Address(HOST, port) for me, port in enumerate(told)})
        await until(members.everyone_present)
        network.begin()
        await members.exchange(messages)
        await until(members.resting, within_s=60)
        assert [len(delivered) for delivered in members.delivered] == [3 * messages] * 3
        assert members.violations() == []
    finally:
        await members.aclose()
        await network.aclose()


@pytest.mark.parametrize(
    ("ordering", "dissemination"),
    [("fifo", "best_effort"), ("causal_vector", "majority_acks"), ("total_skeen", "direct")],
)
def test_links_bring_what_was_lost(ordering: str, dissemination: str) -> None:
    async def scenario() -> None:
        network = Network(parse_faults("loss:4%,delay:2ms±2ms"), 3, seed=7)
        await exchange_through(network, Group(ordering, 3, dissemination=dissemination), 120)
        assert network.traffic.lost >= 10, "otherwise nothing was put to the test"
        assert network.traffic.connections >= 10

    asyncio.run(scenario())


def test_a_connection_that_only_one_side_knows_to_be_broken_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a router forgets it: the other side hears nothing more, and is not told why."""
    monkeypatch.setattr(cable, "HALF_OPEN_S", 3600)

    async def scenario() -> None:
        network = Network(parse_faults("loss:8%@0s+300ms"), 3, seed=7)
        members = Group("causal_vector", 3, settings=Settings(heartbeat_s=0.1))
        await exchange_through(network, members, 120)
        assert network.traffic.lost >= 3

    asyncio.run(scenario())
