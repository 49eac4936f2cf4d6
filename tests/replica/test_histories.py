"""Which beginning a group goes back to: that of founders who have met the same, and no other."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.replica import seeking
from ordercast.replica.generation import Generation
from ordercast.replica.rolls import first
from ordercast.replica.seeking import Seeker, Standing
from ordercast.runtime.discovery import Address
from ordercast.runtime.frames import Roll, Seat

WHERE = Address("h", 1)


def test_founders_have_begun_when_all_have_met_the_same() -> None:
    generation = Generation.__new__(Generation)
    generation._roll = first({"a": WHERE, "b": Address("h", 2)})
    generation._met, generation.begun = {}, asyncio.Event()
    same = {"a": "1", "b": "2"}
    for sender, lives in (("a", same), ("b", {"a": "1", "b": "forgot"}), ("b", {"b": "2"})):
        generation.heard(sender, lives)
        assert not generation.settled
    generation.heard("b", same)
    assert generation.settled
    assert generation.begun.is_set()
    assert generation.lives == same


@pytest.mark.parametrize(("ours", "found"), [("h1", False), ("h2", True), ("", True)])
def test_a_roll_of_another_history_is_never_the_newer_one(
    monkeypatch: pytest.MonkeyPatch, ours: str, found: bool
) -> None:
    async def answer(*_: object) -> Roll:
        return Roll(9, {"x": Seat("h:1", "l")}, (), "h2")

    monkeypatch.setattr(seeking, "knock", answer)
    house: Any = SimpleNamespace(life="l", door=None)
    seeker = Seeker(house, lambda: Standing(3, ours))
    newest = asyncio.run(seeker.newest([WHERE], wants=False))
    assert (newest is not None) == found
