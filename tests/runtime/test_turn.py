"""What members tell each other: it rides on the next frame, and leaves at once if someone waits."""

from __future__ import annotations

import asyncio

import pytest

from ordercast import Group, Settings
from ordercast.runtime import outgoing, turn

from .helpers import until
from .test_join import joined, take

pytestmark = pytest.mark.timeout(60)

NEVER_S = 1000.0


@pytest.fixture(autouse=True)
def nothing_leaves_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has just sent waits for a ride for ever, and reports wait as long."""
    for name in ("REPORT_DELAY_S", "REPORT_RIDE_S", "RIDE_S", "ACK_DELAY_S"):
        monkeypatch.setattr(turn, name, NEVER_S)
    monkeypatch.setattr(outgoing, "PROMPT_S", -1.0)


def unreported(group: Group) -> int:
    return len(group._node.core.standing.lacking)


async def all_send(*groups: Group) -> None:
    """And everything has arrived: whatever is not told by now waits for a ride."""
    for group in groups:
        await group.send(b"something")
    await until(lambda: all(not len(group._node.outgoing) for group in groups))
    await until(
        lambda: all(
            link.received == groups[peer]._node.core.links[me].sent
            for me, group in enumerate(groups)
            for peer, link in group._node.core.links.items()
        )
    )


@pytest.mark.parametrize("reliability", ["best_effort", "uniform"])
def test_whoever_waits_is_told_at_once(reliability: str) -> None:
    async def run() -> None:
        async with joined("a", "b", "c", reliability=reliability) as groups:
            await all_send(*groups)
            assert any(unreported(group) for group in groups)
            async with asyncio.timeout(10):
                receipt = await groups[0].send(b"mine")
                await receipt.stable()
                assert await receipt.delivered_by() == ("a", "b", "c")
            assert not unreported(groups[0])

    asyncio.run(run())


def test_a_report_rides_on_what_is_sent_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "REPORT_EVERY_S", 0.0)

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            await all_send(a, b)
            before = unreported(a)
            await b.send(b"with a report")
            await until(lambda: unreported(a) < before)

    asyncio.run(run())


def test_whoever_has_filled_its_window_hears_of_room() -> None:
    settings = Settings(window_bytes=10_000, heartbeat_s=30)

    async def send_many(group: Group) -> None:
        for _ in range(30):
            await group.send(bytes(5_000))

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort", settings=settings) as (a, b):
            reading = asyncio.create_task(take(a, 30))
            sending = asyncio.create_task(send_many(a))
            await until(lambda: a._node.outgoing.busy and b._node.core.queue)
            assert not sending.done()
            async with asyncio.timeout(10):
                await asyncio.gather(take(b, 30), sending, reading)

    asyncio.run(run())


def test_a_majority_is_known_from_what_others_send_next() -> None:
    async def run() -> None:
        async with joined("a", "b", "c", reliability="uniform") as groups:
            await all_send(*groups)
            await all_send(*groups)
            last = groups[2]
            assert last._node.core.last[2] == 1  # of the second nobody has told it yet
            await all_send(*groups)
            await until(lambda: last._node.core.last[2] == 2)

    asyncio.run(run())


def test_an_application_that_sends_when_its_own_came_back_seems_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outgoing, "PROMPT_S", NEVER_S)

    async def ping(group: Group, times: int) -> None:
        await (await group.send(b"the first")).stable()
        for number in range(1, times + 1):
            await group.send(b"mine")
            async for delivery in group:
                if (delivery.sender, delivery.number) == (group.me, number):
                    break

    async def run() -> None:
        async with joined("a", "b", "c", reliability="uniform") as groups:
            async with asyncio.timeout(20):
                await asyncio.gather(*(ping(group, 50) for group in groups))

    asyncio.run(run())
