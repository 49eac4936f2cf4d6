"""`send_many`: the same messages as from a loop of `send`, whatever their sizes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

import ordercast
from ordercast import Group, UsageError
from ordercast.runtime.bundle import BUNDLE_MESSAGES_MAX
from ordercast.runtime.outgoing import BUNDLE_BYTES, OVERHEAD_BYTES, Slot, portions
from ordercast.runtime.standing import Standing

from .helpers import until
from .test_join import joined, take

pytestmark = pytest.mark.timeout(60)


async def payloads_of(group: Group, count: int) -> list[bytes]:
    found: list[bytes] = []
    async for batch in group.batches():
        assert batch.first == len(found) + 1
        found += batch.payloads
        if len(found) >= count:
            return found
    raise AssertionError("it ended")


def test_order_numbers_and_receipts() -> None:
    async def run() -> None:
        async with joined("a", "b", "c") as (a, b, c):
            first = await a.send(b"0")
            receipts = await a.send_many(b"%d" % number for number in range(1, 5))
            last = await a.send(b"5")
            expected = [f"a:{number + 1} {number}" for number in range(6)]
            assert await take(b, 6) == await take(c, 6) == expected
            assert [each.id for each in (first, *receipts, last)] == [f"a:{n}" for n in range(1, 7)]
            assert len(receipts) == 4
            async with asyncio.timeout(10):
                await receipts.stable()
                assert await receipts.delivered_by("b", "c") in (("a", "b", "c"), ("b", "c"))
                assert await (await a.send_many([])).delivered_by() == ()

    asyncio.run(run())


def test_who_has_all_of_them_is_who_has_them_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Word of the first bundle may come while another one is waited for."""
    late: list[tuple[Standing, int, Sequence[int], int]] = []
    heard = Standing.told

    def told(standing: Standing, process: int, ranges: Sequence[int], taken: int) -> None:
        if standing.me == 0 and process == 2:
            late.append((standing, process, ranges, taken))
        else:
            heard(standing, process, ranges, taken)

    monkeypatch.setattr(Standing, "told", told)

    async def run() -> None:
        async with joined("a", "b", "c", reliability="best_effort") as (a, *_):
            receipts = await a.send_many([b"1" * 200_000, b"2" * 200_000])
            for each in receipts:
                assert await each.delivered_by("b") == ("a", "b")
            await until(lambda: any(ranges[-1:] == (2,) for _, _, ranges, _ in late))
            waits = a._until_delivered

            async def until_delivered(slot: Slot, names: tuple[str, ...]) -> tuple[str, ...]:
                found = await waits(slot, names)
                while late:
                    heard(*late.pop(0))
                return found

            monkeypatch.setattr(a, "_until_delivered", until_delivered)
            assert await receipts.delivered_by("b") == ("a", "b", "c")

    asyncio.run(run())


def test_any_sizes_come_whole_and_in_order() -> None:
    chance = random.Random(3)
    sizes = [chance.choice([0, 1, 64, 900, 30_000, BUNDLE_BYTES, 200_000]) for _ in range(120)]
    sent = [bytes([n % 256]) * size for n, size in enumerate(sizes)] + [b""] * 10_000

    async def run() -> None:
        settings = ordercast.Settings(window_bytes=500_000)
        async with joined("a", "b", settings=settings) as (a, b):
            own = asyncio.create_task(payloads_of(a, len(sent)))
            other = asyncio.create_task(payloads_of(b, len(sent)))
            async with asyncio.timeout(40):
                receipts = [
                    await a.send_many(sent[begin : begin + 5_000])
                    for begin in range(0, len(sent), 5_000)
                ]
                assert await own == await other == sent
                for each in receipts:
                    assert await each.delivered_by() == ("a", "b")
            assert sum(map(len, receipts)) == len(sent)

    asyncio.run(run())


@pytest.mark.parametrize("limit", [BUNDLE_BYTES, 20_000, 0])
def test_portions_fill_bundles_and_never_overfill_them(limit: int) -> None:
    assert list(portions([], 0, limit=limit)) == []
    chance = random.Random(7)
    for _ in range(30):
        sizes = [chance.choice([0, 10, 5_000, 70_000]) for _ in range(chance.randrange(9_000))]
        found = list(portions([bytes(size) for size in sizes], sum(sizes), limit=limit))
        assert [len(each) for portion, _ in found for each in portion] == sizes
        for portion, size in found:
            assert size == sum(len(each) + OVERHEAD_BYTES for each in portion)
            assert size <= limit or len(portion) == 1
            assert len(portion) <= BUNDLE_MESSAGES_MAX
        for (_, before), (portion, _) in pairwise(found):
            assert before + len(portion[0]) + OVERHEAD_BYTES > limit, "it had room"


def test_what_is_no_message_is_refused_before_anything_is_sent() -> None:
    async def run() -> None:
        async with joined("a", "b") as (a, b):
            with pytest.raises(UsageError, match=r"a message of type str: send bytes, as in text"):
                await a.send("text")  # type: ignore[arg-type]
            with pytest.raises(UsageError, match=r"of type str"):
                await a.send_many([b"bytes", "text"])  # type: ignore[list-item]
            with pytest.raises(UsageError, match="NoneType is no messages: give several of them"):
                await a.send_many(None)  # type: ignore[arg-type]
            with pytest.raises(UsageError, match=r"a message of 16777216 bytes: \d+ is the limit"):
                await a.send_many([b"small", bytes(2**24)])
            changing = bytearray(b"as it was")
            await a.send(memoryview(bytes(8)).cast("I"))
            assert a._outgoing.bytes == 8 + OVERHEAD_BYTES, "it has two items, and eight bytes"
            assert (await anext(b)).payload == bytes(8)
            await a.send(changing)
            await a.send_many([memoryview(changing)])
            changing[:] = b"different"
            assert await take(b, 2) == ["a:2 as it was", "a:3 as it was"]

    asyncio.run(run())
