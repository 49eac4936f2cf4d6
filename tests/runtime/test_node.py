"""Several nodes in one loop, on real sockets, also while their connections are being cut."""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from typing import Any

import pytest

from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.protocols.effects import HostEffect, StartTimer
from ordercast.protocols.stack import Stack
from ordercast.runtime.core import Core
from ordercast.runtime.door import Door
from ordercast.runtime.frames import PAYLOAD_BYTES_MAX, VERSION, Ack, Hello, encode_frame
from ordercast.runtime.node import HOST, Node
from ordercast.runtime.weather import Weather

from .cutting import CuttingProxy
from .helpers import CHARTER, RUN, Group, group, until

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(("ordering", "dissemination"), catalog.combinations())
def test_everyone_delivers_everything_in_the_promised_order(
    ordering: str, dissemination: str
) -> None:
    async def run() -> None:
        weather = Weather(delay_ms=(0, 10))
        async with group(ordering, 3, dissemination=dissemination, weather=weather) as members:
            await members.exchange(20)
            await until(members.resting)
            assert members.violations() == []
            copies = 1 if catalog.ORDERINGS[ordering].destinations == "one" else 3
            assert sum(map(len, members.delivered)) == 60 * copies

    asyncio.run(run())


def test_without_an_ordering_the_weather_does_break_the_order() -> None:
    """Otherwise the test above proves nothing."""

    async def run() -> list[list[int]]:
        async with group("unordered", 2, weather=Weather(delay_ms=(0, 10))) as members:
            await members.exchange(40)
            await until(members.resting)
            return [
                [message.number for message in delivered if message.sender != f"p{me}"]
                for me, delivered in enumerate(members.delivered)
            ]

    for numbers in asyncio.run(run()):
        assert numbers != sorted(numbers)
        assert sorted(numbers) == list(range(1, 41))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("ordering", ["fifo", "causal_vector"])
def test_cut_connections_lose_repeat_and_reorder_nothing(
    ordering: str, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        members = Group(ordering, 3, seed=seed)
        await members.listen()
        proxies = {
            me: CuttingProxy(port, seed=f"{seed}/{me}") for me, port in members.ports.items()
        }
        members.ports = {me: await proxy.start() for me, proxy in proxies.items()}
        members.dial()
        try:
            await members.exchange(100, seed=seed, pause_s=0.006)
            for proxy in proxies.values():
                proxy.cutting = False
            await until(members.resting)
        finally:
            await members.aclose()
            for proxy in proxies.values():
                await proxy.aclose()
        assert sum(proxy.cuts for proxy in proxies.values()) > 10
        assert members.violations() == []
        assert [len(delivered) for delivered in members.delivered] == [300, 300, 300]
        received = [event for event in members.events if event.kind == "receive"]
        assert len(received) == 600

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert caplog.records == [], "a cut is nobody's fault"


def test_a_trace_row_for_each_thing_that_happens_at_the_users_boundary() -> None:
    async def run() -> None:
        async with group("causal_vector", 2) as members:
            message = await members.members[0].send(b"hello")
            await until(members.resting)
            rows = [(event.process, event.kind, event.message) for event in members.events]
            id = (0, message.number)
            assert rows == [
                (0, "send", id),
                (0, "deliver", id),
                (1, "receive", id),
                (1, "deliver", id),
            ]
            sent, _, received, _ = members.events
            assert sent.bytes == 5
            assert sent.control_bytes == received.control_bytes
            assert sent.control_bytes is not None
            assert 0 < sent.control_bytes < 50
            assert all(event.time_us for event in members.events)

    asyncio.run(run())


def test_what_is_sent_before_anyone_is_there_arrives_later() -> None:
    async def run() -> None:
        members = Group("fifo", 2)
        await members.listen()
        await members.members[1].send(b"early")
        members.dial()
        await until(members.resting)
        assert [message.payload for message in members.delivered[0]] == [b"early"]
        await members.aclose()

    asyncio.run(run())


def test_closing_flushes_what_is_in_the_air() -> None:
    async def run() -> None:
        async with group("fifo", 2, weather=Weather(delay_ms=(60_000, 60_000))) as members:
            for _ in range(10):
                await members.members[0].send(b"last words")
            await members.nodes[0].aclose()
            assert len(members.delivered[1]) == 10

    asyncio.run(run())


def test_closing_waits_for_acknowledgements_of_what_was_in_the_air() -> None:
    async def run() -> None:
        lonely = Group("fifo", 2, weather=Weather(delay_ms=(60_000, 60_000)))
        await lonely.listen()
        node = lonely.nodes[0]
        reader, writer = await asyncio.open_connection(HOST, lonely.ports[0])
        writer.write(encode_frame(Hello(VERSION, RUN, CHARTER, 1, "life of 1", 0, 0)))
        await until(lambda: node.company.present == (1,))
        await lonely.members[0].send(b"last words")
        closing = asyncio.create_task(node.aclose(flush_s=10))
        await until(lambda: node.counters().links[1].handed > 0)
        await asyncio.sleep(0.1)
        assert not closing.done()
        writer.write(encode_frame(Ack(1)))
        async with asyncio.timeout(5):
            await closing
        assert b"last words" in await reader.read(-1)
        writer.close()
        await lonely.aclose()

    asyncio.run(run())


def test_a_member_that_went_away_is_not_present_and_not_waited_for() -> None:
    async def run() -> None:
        async with group("fifo", 3) as members:
            await members.nodes[2].aclose()
            await until(lambda: members.nodes[0].company.present == (1,))
            await until(lambda: members.nodes[1].company.present == (0,))
            await members.members[0].send(b"to whoever is left")
            async with asyncio.timeout(5):
                await members.nodes[0].aclose(flush_s=60)

    asyncio.run(run())


def test_closing_does_not_wait_for_a_member_that_is_away() -> None:
    async def run() -> float:
        members = Group("fifo", 3)
        await members.listen()
        await members.members[0].send(b"to nobody")
        loop = asyncio.get_running_loop()
        start = loop.time()
        await members.aclose()
        await members.nodes[0].aclose()  # once more does nothing
        with pytest.raises(UsageError, match="has left the group"):
            await members.members[0].send(b"too late")
        return loop.time() - start

    assert asyncio.run(run()) < 0.5


def test_closing_leaves_no_task_transport_or_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        asyncio.get_running_loop().slow_callback_duration = 60  # a busy machine is no flaw of ours
        async with group("causal_vector", 3, weather=Weather(delay_ms=(0, 5))) as members:
            await members.exchange(5)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        asyncio.run(run(), debug=True)
        gc.collect()
    assert caplog.records == []


def test_a_payload_that_fits_no_frame_is_refused_before_the_protocol_counts_it() -> None:
    async def run() -> None:
        async with group("causal_vector", 2) as members:
            with pytest.raises(UsageError, match="split it"):
                await members.members[0].send(bytes(PAYLOAD_BYTES_MAX + 1))
            await members.members[0].send(bytes(PAYLOAD_BYTES_MAX))
            await until(members.resting)
            assert [message.number for message in members.delivered[1]] == [1]

    asyncio.run(run())


class Ticking(Stack):
    """Starts a timer three times; the name is reused, so only the last start counts."""

    def __init__(self, inner: Stack) -> None:
        super().__init__(inner.ordering, inner.dissemination)
        self.rang: list[str] = []

    def start(self) -> list[HostEffect]:
        return [StartTimer("t", 0), StartTimer("t", 30_000_000), StartTimer("t", 1000)]

    def timer(self, name: str) -> list[HostEffect]:
        self.rang.append(name)
        if len(self.rang) == 2:
            raise ZeroDivisionError("a bug in a protocol")
        return [StartTimer("t", 1000)]


def test_timers_ring_once_and_a_bug_in_the_protocol_is_a_failure_of_the_node() -> None:
    async def run() -> None:
        stack = Ticking(catalog.build("fifo", "direct", 0, 1))
        node = Node(Core(stack, life=""), door=Door(RUN, "p0"), names=("p0",), charter=CHARTER)
        node.start()
        with pytest.raises(ZeroDivisionError):
            await node.failure
        assert stack.rang == ["t", "t"]
        await node.aclose()

    asyncio.run(run())


def test_after_a_bug_a_node_does_nothing_more() -> None:
    async def run() -> None:
        members = Group("unordered", 3)
        stack = members.nodes[0].core.stack
        handle = stack.handle

        def handle_or_die(source: int, packet: Any) -> list[HostEffect]:
            if b"poison" in packet.payload:
                raise ZeroDivisionError("a bug in the protocol")
            return handle(source, packet)

        stack.handle = handle_or_die  # type: ignore[method-assign]
        await members.listen()
        members.dial()
        await until(members.everyone_present)
        await members.members[1].send(b"fine")
        await until(lambda: members.delivered[0] != [])
        for payload in (b"poison", b"too late"):
            await members.members[1].send(payload)
        with pytest.raises(ZeroDivisionError):
            await members.nodes[0].failure
        await members.members[2].send(b"too late from elsewhere")
        await asyncio.sleep(0.2)  # time enough to dial again, if anyone answered
        assert [message.payload for message in members.delivered[0]] == [b"fine"]
        assert members.nodes[1].company.present == (2,)
        with pytest.raises(ZeroDivisionError):
            await members.members[0].send(b"from the grave")
        await members.aclose()

    asyncio.run(run())
