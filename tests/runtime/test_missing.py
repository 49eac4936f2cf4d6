"""How soon the others know that a member is gone, in time that leaps."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

import pytest

import ordercast
from ordercast import Group, Settings
from ordercast.testing import Process, World, run

PEERS = {"a": "127.0.0.1:7001", "b": "127.0.0.1:7002", "c": "127.0.0.1:7003"}
BEAT_S = Settings().heartbeat_s


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 (it takes no time)
        await asyncio.sleep(0.001)


class Crowd:
    """Three members, what each of them has seen of the others, and what it was handed."""

    def __init__(
        self,
        world: World,
        *,
        order: str = "causal",
        journal: bool = False,
        members: Iterable[str] = PEERS,
    ) -> None:
        self.world = world
        self.order = order
        self.journal = journal
        self.groups: dict[str, Group] = {}
        self.got: dict[str, list[str]] = {me: [] for me in PEERS}
        self.members = {me: self.start(me) for me in members}

    def start(self, me: str) -> Process:
        return self.world.start(me, self._live, me)

    async def _live(self, me: str) -> None:
        async with ordercast.join(
            "g",
            me=me,
            peers=PEERS,
            order=self.order,
            journal=f"journals/{me}" if self.journal else None,
        ) as group:
            self.groups[me] = group
            async for delivery in group:
                self.got[me].append(delivery.id)

    async def met(self) -> None:
        everyone = tuple(PEERS)
        await until(lambda: len(self.groups) == len(everyone))
        await until(lambda: all(group.view.present == everyone for group in self.groups.values()))

    async def takes_s(self, me: str, other: str, *, suspected: bool = True) -> float:
        """Until it is seen so."""
        began = self.world.now
        await until(lambda: (other in self.groups[me].view.suspected) is suspected)
        return self.world.now - began


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENETUNREACH, errno.ETIMEDOUT])
def test_who_cannot_dial_does_not_know_that_another_is_gone(
    code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is its own machine that lacks something, or the way there that is broken."""

    async def story(world: World) -> None:
        tries = 0

        async def fails(*_: object, **__: object) -> NoReturn:
            nonlocal tries
            tries += 1
            raise OSError(code, os.strerror(code))

        crowd = Crowd(world)
        await crowd.met()
        await asyncio.sleep(5)
        with monkeypatch.context() as patch:
            patch.setattr(world.loop.network, "create_connection", fails)
            for peer in crowd.groups["c"]._node.company:
                assert peer.connection is not None
                peer.connection.abort()
            await asyncio.sleep(BEAT_S)
        assert tries > 2
        await crowd.met()

    with caplog.at_level(logging.INFO, "ordercast"):
        run(story)
    assert not any("suspects" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("victim", PEERS)
def test_one_that_was_killed_is_missed_before_long(
    victim: str, caplog: pytest.LogCaptureFixture
) -> None:
    """At once by those who dial it: nobody listens there any more."""

    async def story(world: World) -> dict[str, float]:
        crowd = Crowd(world)
        await crowd.met()
        await asyncio.sleep(5)
        crowd.members[victim].kill()
        others = [me for me in PEERS if me != victim]
        took = await asyncio.gather(*(crowd.takes_s(me, victim) for me in others))
        for me in others:  # whoever dials knows more
            (peer,) = (peer for peer in crowd.groups[me].status().peers if peer.name == victim)
            why = f"{victim} cannot be reached at {PEERS[victim]}: Connection refused"
            assert (peer.trouble or "").startswith(why if me > victim else "")
        for _ in range(100):  # and nobody changes its mind
            await asyncio.sleep(0.02)
            assert all(crowd.groups[me].view.suspected == (victim,) for me in others)
        return dict(zip(others, took, strict=True))

    with caplog.at_level(logging.INFO, "ordercast"):
        for me, took_s in run(story).items():
            assert took_s < (0.1 if me > victim else 4 * BEAT_S)
            why = f": {victim} cannot be reached at {PEERS[victim]}" if me > victim else ""
            assert f"{me}: suspects that {victim} is down{why}" in caplog.text


def test_one_whose_machine_is_gone_is_missed_by_its_silence() -> None:
    async def story(world: World) -> float:
        crowd = Crowd(world)
        await crowd.met()
        await asyncio.sleep(5)
        crowd.members["a"].kill(silently=True)
        return await crowd.takes_s("b", "a")

    assert 4 * BEAT_S < run(story) < 4


def test_a_total_order_goes_on_a_moment_after_its_leader_was_killed() -> None:
    async def story(world: World) -> float:
        crowd = Crowd(world, order="total")
        await crowd.met()
        await asyncio.sleep(5)
        crowd.members["a"].kill()
        began = world.now
        await crowd.groups["b"].send(b"who leads?")
        await until(lambda: bool(crowd.got["c"]))
        return world.now - began

    assert run(story) < 0.2


def test_one_that_is_started_again_at_once_is_trusted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def story(world: World) -> tuple[str, ...]:
        crowd = Crowd(world, journal=True)
        await crowd.met()
        crowd.members["a"].kill()
        await crowd.takes_s("c", "a")
        crowd.start("a")
        await crowd.takes_s("c", "a", suspected=False)
        await crowd.groups["c"].send(b"are you there?")
        await until(lambda: bool(crowd.got["a"]))
        return crowd.groups["c"].view.suspected

    assert run(story) == ()


def test_who_comes_late_at_the_beginning_is_not_missed(caplog: pytest.LogCaptureFixture) -> None:
    async def story(world: World) -> None:
        crowd = Crowd(world, members="c")
        await asyncio.sleep(3)
        crowd.start("b")
        await asyncio.sleep(3)
        crowd.start("a")
        await crowd.met()

    with caplog.at_level(logging.INFO, "ordercast"):
        run(story)
    assert not any("suspects" in record.getMessage() for record in caplog.records)


def test_who_was_away_itself_blames_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """What broke just before is mended in a moment, and nobody could do so meanwhile."""

    async def story(world: World) -> None:
        crowd = Crowd(world)
        await crowd.met()
        await asyncio.sleep(1)
        b = crowd.groups["a"]._node.company.peers[1]
        assert b.connection is not None
        b.connection.abort()
        while b.lost_at is None:  # noqa: ASYNC110 (not a moment later)
            await asyncio.sleep(0)
        crowd.members["a"].pause()
        crowd.members["b"].pause()  # so it is not yet mended when a is back
        await asyncio.sleep(1)
        crowd.members["a"].resume()
        await asyncio.sleep(BEAT_S)
        crowd.members["b"].resume()
        await asyncio.sleep(5)
        assert crowd.groups["a"].view.present == tuple(PEERS)

    with caplog.at_level(logging.INFO, "ordercast"):
        run(story)
    assert not any("a: suspects" in record.getMessage() for record in caplog.records)
