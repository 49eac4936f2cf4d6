"""Leaving: nobody is kept waiting by whoever is on the way out."""

from __future__ import annotations

import asyncio

import pytest

from .test_join import joined, take

pytestmark = pytest.mark.timeout(60)


def test_members_that_leave_at_the_same_time_do_not_wait_for_each_other() -> None:
    async def run() -> None:
        async with joined("a", "b", "c") as groups:
            for group in groups:
                await group.send(b"and away")
            leaving = (group._node.aclose(flush_s=100) for group in groups)
            async with asyncio.timeout(30):
                await asyncio.gather(*leaving)

    asyncio.run(run())


def test_whoever_takes_a_message_and_leaves_has_said_that_it_was_delivered() -> None:
    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, b):
            receipt = await a.send(b"take this")
            await take(b, 1)
            await b.aclose()
            async with asyncio.timeout(20):
                assert await receipt.delivered_by() == ("a", "b")

    asyncio.run(run())
