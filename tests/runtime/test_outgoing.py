"""When a bundle leaves, by a clock that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.runtime.outgoing import MANY, Outgoing
from ordercast.runtime.settings import Settings

LINGER_S = 8.0


class Clock:
    """In place of the loop: a `turn` calls what was to be called soon, and timers that are up."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._calls: list[tuple[float, asyncio.Handle]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[..., Any], *arguments: Any) -> asyncio.Handle:
        return self.call_later(0, callback, *arguments)

    def call_later(
        self, delay_s: float, callback: Callable[..., Any], *arguments: Any
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, arguments, asyncio.get_running_loop())
        self._calls.append((self.now + delay_s, handle))
        return handle

    def turn(self) -> None:
        up = [handle for when, handle in self._calls if when <= self.now]
        self._calls = [(when, handle) for when, handle in self._calls if when > self.now]
        for handle in up:
            if not handle.cancelled():
                handle._run()


class Sender:
    """A member's outgoing messages, and the sizes of the bundles that have left."""

    def __init__(self) -> None:
        self.left: list[int] = []
        self.clock = Clock()
        self._node: Any = SimpleNamespace(
            settings=Settings(linger_s=LINGER_S),
            core=SimpleNamespace(sent=0, standing=SimpleNamespace(outstanding=lambda: 0)),
            submit=self._submit,
            intake=SimpleNamespace(see_to_all=lambda: None),
            turn=SimpleNamespace(end_with=lambda step: step()),
        )
        self._outgoing = Outgoing(self._node)
        self._outgoing._loop = self.clock  # type: ignore[assignment]

    def send(self, count: int = 1) -> None:
        slot = self._outgoing.slot or self._outgoing.begin(None)
        slot.payloads += [b""] * count

    def turns(self) -> list[int]:
        """Enough for all that is to happen at this moment."""
        for _ in range(4):
            self.clock.turn()
        return self.left

    def pass_s(self, seconds: float) -> list[int]:
        self.clock.now += seconds
        return self.turns()

    def _submit(self, _: bytes, __: int, payloads: list[bytes], ___: None) -> int:
        self.left.append(len(payloads))
        return len(self.left)


def run(test: Callable[[Sender], None]) -> None:
    async def inside() -> None:
        test(Sender())

    asyncio.run(inside())


def test_whoever_sends_little_never_waits() -> None:
    def test(sender: Sender) -> None:
        for count in range(1, MANY + 1):
            sender.send()
            assert sender.turns() == [1] * count

    run(test)


def test_after_many_a_message_waits_half_the_time_if_no_company_comes() -> None:
    def test(sender: Sender) -> None:
        sender.send(MANY)
        assert sender.turns() == [MANY]
        sender.send()
        sender.send()
        assert sender.turns() == [MANY]
        assert sender.pass_s(LINGER_S * 0.49) == [MANY]
        assert sender.pass_s(LINGER_S * 0.02) == [MANY, 2]

    run(test)


@pytest.mark.parametrize("share", [0.5, 0.7, 0.9])
def test_whoever_comes_back_after_half_the_time_waits_for_one_turn(share: float) -> None:
    def test(sender: Sender) -> None:
        sender.send(MANY)
        sender.turns()
        sender.pass_s(LINGER_S * share)
        sender.send(3)
        assert sender.turns() == [MANY, 3]

    run(test)


def test_while_company_comes_all_wait_the_whole_time() -> None:
    def test(sender: Sender) -> None:
        sender.send(MANY)
        sender.turns()
        sender.clock.now += LINGER_S * 0.6
        for _ in range(10):
            sender.send()
            sender.clock.turn()
        assert sender.pass_s(LINGER_S * 0.39) == [MANY]
        assert sender.pass_s(LINGER_S * 0.02) == [MANY, 10]

    run(test)
