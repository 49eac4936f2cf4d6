"""Total order by consensus between real members: who leads, and what they say when they wait."""

from __future__ import annotations

import asyncio
import logging

import pytest

import ordercast
from ordercast.cli.status import _rows
from tests.runtime.helpers import until
from tests.runtime.test_join import joined, take

pytestmark = pytest.mark.timeout(60)

QUICK = ordercast.Settings(heartbeat_s=0.05, dead_after_s=0.5)


def said(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if getattr(r, "event", None) == event]


def test_another_leads_when_the_first_has_left(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ordercast")

    async def run() -> None:
        async with joined("a", "b", "c", order="total", settings=QUICK) as (a, b, c):
            assert b.algorithm == "total_consensus over direct"
            assert [g.view.leader for g in (a, b, c)] == ["a"] * 3
            await a.send(b"1")
            assert await take(b, 1) == await take(c, 1) == ["a:1 1"]
            await a.aclose()
            await c.send(b"2", to=["a", "b", "c"])  # which is everyone
            assert await take(b, 1) == await take(c, 1) == ["c:1 2"]
            assert b.view.leader == c.view.leader == b.status().leader == "b"
            assert ("leader", "b") in _rows(c.status())
            await until(lambda: "c: b leads" in said(caplog, "leader"))

    asyncio.run(run())
    assert said(caplog, "leader")[:3] == ["a: a leads", "b: a leads", "c: a leads"]


def test_who_has_no_leader_says_none() -> None:
    async def run() -> None:
        async with joined("a", order="causal") as (a,):
            assert a.view.leader is a.status().leader is None
            assert "leader" not in dict(_rows(a.status()))
        async with joined("a", order="total", reliability="best_effort") as (a,):
            assert a.view.leader == "a"

    asyncio.run(run())


def test_a_majority_that_is_lost_for_good_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with joined("a", "b", "c", order="total", settings=QUICK) as (a, b, c):
            await b.aclose()
            await c.aclose()
            await until(lambda: a.view.dead == ("b", "c"))

    asyncio.run(run())
    [line] = said(caplog, "majority_lost")
    assert line.startswith(
        "a: only 1 of 3 members is left, and total_consensus over direct needs 2"
    )


def test_a_send_that_waits_for_one_who_is_away_is_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = ordercast.Settings(heartbeat_s=0.05, window_bytes=10_000)

    async def run() -> None:
        peers = ("a", "b", "c")
        async with joined(*peers, order="total", settings=settings) as (a, b, c):
            reading = [asyncio.create_task(take(group, 10**6)) for group in (a, b)]
            await c.aclose()
            sending = asyncio.create_task(b.send_many([bytes(1000)] * 200))
            await until(lambda: bool(said(caplog, "waits")))
            await asyncio.sleep(0.2)
            assert not sending.done()
            assert dict(_rows(b.status()))["window"].endswith("in use: sending waits for c")
            for task in (sending, *reading):
                task.cancel()

    asyncio.run(run())
    [line] = said(caplog, "waits")
    assert line.startswith("b: sending waits until c can take more: nothing is heard of it, and")
    assert not said(caplog, "idle")


def test_a_program_that_only_sends_is_told_of_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.runtime.company.IDLE_S", 0.2)
    settings = ordercast.Settings(heartbeat_s=0.05, window_bytes=10_000)

    async def run() -> None:
        async with joined("a", "b", settings=settings) as (a, b):
            reading = asyncio.create_task(take(b, 10**6))
            sending = asyncio.create_task(a.send_many([bytes(1000)] * 200))
            await until(lambda: bool(said(caplog, "idle")))
            await asyncio.sleep(0.5)
            assert not sending.done()
            assert dict(_rows(a.status()))["window"].endswith("in use: sending waits for a itself")
            reading_too = asyncio.create_task(take(a, 10**6))
            await sending
            for task in (reading, reading_too):
                task.cancel()

    asyncio.run(run())
    [line] = said(caplog, "idle")
    assert line.startswith("a: sending waits until this program takes what is delivered to it")


def test_a_program_that_gets_nothing_is_not_blamed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ordercast.runtime.company.IDLE_S", 0.2)
    settings = ordercast.Settings(heartbeat_s=0.05, window_bytes=10_000, dead_after_s=None)

    async def run() -> None:
        async with joined("a", "b", "c", settings=settings) as (a, b, c):
            reading = asyncio.create_task(take(a, 10**6))
            await b.aclose()
            await c.aclose()
            sending = asyncio.create_task(a.send_many([bytes(1000)] * 200))
            await until(lambda: bool(said(caplog, "waits")))
            await asyncio.sleep(0.5)
            for task in (sending, reading):
                task.cancel()

    asyncio.run(run())
    assert not said(caplog, "idle")
