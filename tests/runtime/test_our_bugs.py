"""A bug in an algorithm ends its member: nobody acts on what came of it, and no journal has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ordercast import Group, Settings
from ordercast.errors import PeerError
from ordercast.protocols import catalog
from ordercast.protocols.disseminations.majority_acks import MajorityAcks
from ordercast.protocols.orderings.causal_vector import CausalVector
from ordercast.runtime.core import Core
from ordercast.runtime.inputs import LoggedCore

from .helpers import until
from .test_join import joined, take
from .test_lives import Pair

pytestmark = pytest.mark.timeout(60)


class BugError(Exception):
    """Ours."""


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("submit", (b"", 1, [b""], None)), ("take", (1, b"")), ("timer", ("one",))],
)
def test_whatever_is_asked_of_a_core_that_breaks_is_told_at_once(
    name: str, arguments: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks: some do so where nobody looks at exceptions."""
    bugs: list[Exception] = []
    inputs = LoggedCore(Core(catalog.build("fifo", "direct", 0, 2), life=""), None, bugs.append)
    monkeypatch.setattr(Core, name, breaks)
    with pytest.raises(BugError) as raised:
        getattr(inputs, name, partial(inputs.other, name))(*arguments)
    assert bugs == [raised.value]


def test_what_a_peer_does_wrong_is_no_bug_of_ours() -> None:
    bugs: list[Exception] = []
    inputs = LoggedCore(Core(catalog.build("fifo", "direct", 0, 2), life=""), None, bugs.append)
    with pytest.raises(PeerError):
        inputs.take(1, b"nonsense")
    assert bugs == []


def breaks(*_: Any, **__: Any) -> Any:
    raise BugError("half-way")


async def gets_a_message(a: Group, b: Group) -> None:
    a._node.core.stack.ordering.receive = breaks  # type: ignore[method-assign]
    await b.send(b"the last straw")


async def loses_another(a: Group, b: Group) -> None:
    a._node.core.stack.suspect = breaks  # type: ignore[method-assign]
    b._node.fail(BugError("down"))


async def has_a_timer_that_is_up(a: Group, b: Group) -> None:
    a._node.core.stack.dissemination.timer = breaks  # type: ignore[method-assign]
    await b.send(b"tell me that you have it")


@pytest.mark.parametrize("step", [gets_a_message, loses_another, has_a_timer_that_is_up])
def test_a_bug_ends_the_member_and_is_not_in_its_journal(
    step: Callable[[Group, Group], Any], tmp_path: Path
) -> None:
    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        settings = Settings(heartbeat_s=0.05)
        async with Pair(tmp_path, reliability="uniform", settings=settings) as pair:
            a, b = await pair.both()
            await a.send(b"while all was well")
            assert await take(b, 1) == await take(a, 1) == ["a:1 while all was well"]
            await step(a, b)
            await until(a._node.failure.done)
            with pytest.raises(BugError, match="half-way"):
                await a.send(b"more")
            assert a._node.pulse._timer is None
            await pair.die("a", a)
            await pair.leave("b")
            a, b = await pair.both()
            await a.send(b"and again")
            while (await take(b, 1))[0].split(maxsplit=1)[1] != "and again":
                pass

    asyncio.run(run())


def test_a_receipt_of_what_was_never_sent_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CausalVector, "send", breaks)

    async def run() -> None:
        async with joined("a", "b", reliability="best_effort") as (a, _):
            receipt = await a.send(b"x")
            await until(a._node.failure.done)
            for waiting in (receipt.stable(), receipt.delivered_by()):
                with pytest.raises(BugError, match="half-way"):
                    await waiting

    asyncio.run(run())


def test_a_bug_in_a_timer_that_is_up_at_once_ends_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """What led to it is neither acknowledged nor handed out."""
    monkeypatch.setattr(MajorityAcks, "timer", breaks)

    async def run() -> None:
        async with joined("a", "b", reliability="uniform") as (a, b):
            await a.send(b"the last one that b gets")
            with pytest.raises(BugError, match="half-way"):
                await take(b, 1)
            link = b._node.core.links[0]
            assert (link.received, link.safe, b._handout.visible) == (1, 0, 0)

    asyncio.run(run())


def test_a_bug_at_the_end_of_a_turn_that_begins_a_segment_is_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core has stopped half-way: who came back to that would never say what it has got."""

    async def run() -> None:
        async with Pair(tmp_path, order="fifo", reliability="best_effort") as pair:
            a, b = await pair.both()
            receipt = await a.send(b"take this")
            await take(b, 1)  # it has yet to say so
            node, journal = b._node, b._node.journal
            assert journal is not None
            journal._full_bytes = 0
            node.turn.stop()
            with monkeypatch.context() as patch:
                patch.setattr(Core, "_put", breaks)
                node.turn.commit()
            with pytest.raises(BugError, match="half-way"):
                await b.send(b"more")
            assert not node.core.unreported[0], "it had forgotten that already"
            await pair.die("b", b)
            await pair.join("b")
            async with asyncio.timeout(20):
                assert await receipt.delivered_by() == ("a", "b")

    asyncio.run(run())
