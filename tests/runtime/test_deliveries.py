"""One bundle, taken message by message, by one iterator or several, and in what order they like."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import ordercast
from ordercast import Group
from ordercast.runtime import deliveries, group

from .helpers import until
from .test_join import joined, take
from .test_lives import Pair
from .test_taking import TWINS, twin_named

pytestmark = pytest.mark.timeout(60)

COUNT = 10


@pytest.fixture(autouse=True, params=TWINS)
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this holds whether deliveries are handed out by compiled code or in Python."""
    twin = twin_named(request.param)
    monkeypatch.setattr(group, "Reader", twin.Reader)
    monkeypatch.setattr(deliveries, "Reader", twin.Reader)
    monkeypatch.setattr(deliveries, "Delivery", twin.Delivery)


async def bundle_for(group: Group, sender: Group) -> None:
    """Ten messages of the sender's are here, in one bundle."""
    await sender.send_many([b"%d" % number for number in range(1, COUNT + 1)])
    await until(lambda: group._handout.visible == COUNT)
    assert len(group._node.core.queue) == 1


def test_iterators_share_a_bundle_and_no_message_comes_twice() -> None:
    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            await bundle_for(b, a)
            one, other = aiter(b), aiter(b)
            numbers = [(await anext(each)).number for each in (one, one, other, one, other)]
            assert numbers == [1, 2, 3, 4, 5]
            assert b.status().queued == COUNT - 5
            async for batch in b.batches():
                assert (batch.first, batch.position, len(batch)) == (6, 6, 5)
                break
            await a.send(b"the next")
            async with asyncio.timeout(20):
                assert (await anext(one)).payload == b"the next"

    asyncio.run(run())


def test_each_delivery_is_what_was_sent() -> None:
    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            await bundle_for(b, a)
            (bundle,) = b._node.core.queue
            async for delivery in b:
                number = delivery.number
                assert (delivery.sender, delivery.payload) == ("a", b"%d" % number)
                assert (delivery.position, delivery.time_us) == (number, bundle.time_us)
                if number == COUNT:
                    break
            assert not b._node.core.queue  # though nobody has asked for more

    asyncio.run(run())


@pytest.mark.parametrize("count", [0, 1, COUNT])
def test_a_batch_is_its_deliveries(count: int) -> None:
    batch = ordercast.Batch("a", 7, [b"%d" % place for place in range(count)], 70, 5)
    expected = [
        deliveries.Delivery("a", 7 + place, b"%d" % place, 70 + place, 5) for place in range(count)
    ]
    assert list(batch) == list(batch) == expected
    assert len(batch) == count


@pytest.mark.parametrize("taken", [1, COUNT - 1, COUNT])
def test_what_was_taken_is_remembered_to_the_message(tmp_path: Path, taken: int) -> None:
    async def run() -> None:
        async with Pair(tmp_path, reliability="best_effort") as pair:
            a, b = await pair.both()
            await bundle_for(b, a)
            await take(b, taken)
            assert b._node.journal is not None
            assert b._node.journal.taken == taken
            await pair.die("b", b)
            b = await pair.join("b")
            await a.send(b"the next")
            left = [f"a:{n} {n}" for n in range(taken + 1, COUNT + 1)]
            assert await take(b, len(left) + 1) == [*left, f"a:{COUNT + 1} the next"]

    asyncio.run(run())


def test_whoever_leaves_and_remembers_gets_no_more_of_a_bundle(tmp_path: Path) -> None:
    async def run() -> None:
        async with Pair(tmp_path, reliability="best_effort") as pair:
            a, b = await pair.both()
            await bundle_for(b, a)
            deliveries = aiter(b)
            assert (await anext(deliveries)).number == 1
            await pair.leave("b")
            assert [delivery.number async for delivery in deliveries] == []

    asyncio.run(run())


def test_whoever_is_cancelled_while_it_waits_leaves_no_trace() -> None:
    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            waiting = asyncio.create_task(take(b, 1))
            await until(lambda: bool(b._node._waiting))
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await a.send(b"for another")
            assert await take(b, 1) == ["a:1 for another"]

    asyncio.run(run())


def test_whoever_looks_now_and_then_leaves_nothing_behind() -> None:
    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            for _ in range(50):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.001):
                        await anext(b)
            assert not b._node._waiting
            await a.send(b"at last")
            assert await take(b, 1) == ["a:1 at last"]

    asyncio.run(run())


@pytest.mark.parametrize("wrapped", [False, True])
def test_whoever_takes_one_at_a_time_leaves_no_task_for_each(wrapped: bool) -> None:
    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            source = ordercast.traced(b) if wrapped else b
            await a.send_many([b"%d" % number for number in range(20)])
            found = [await anext(source)]
            before = asyncio.all_tasks()
            found += [await anext(source) for _ in range(19)]
            await asyncio.sleep(0)  # now the loop sees to iterators that were dropped
            assert asyncio.all_tasks() == before
            assert [int(delivery.payload) for delivery in found] == list(range(20))

    asyncio.run(run())
