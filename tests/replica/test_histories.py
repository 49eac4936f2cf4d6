"""Which beginning a group goes back to: that of founders who have met the same, and no other."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ordercast.replica import seeking
from ordercast.replica.calling import Given, Words
from ordercast.replica.checkpoint import Checkpoint
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
    seeker = Seeker(house, lambda: Standing(3, ours), print)
    newest = asyncio.run(seeker.newest([WHERE], wants=False))
    assert (newest is not None) == found


def test_what_was_tried_of_another_group_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither as a trial, nor as the state to begin with."""
    stranger, member = {"x": Seat("h:1", "l")}, {"a": Seat("h:1", "own")}
    answers = [(stranger, "h1")] * 2 + [(stranger, "h2")] * 2 + [(member, "h1")]
    wishes, tried = [], []

    async def knock(door: Any, where: Address, words: Words) -> Roll:
        wishes.append(words.wants)
        seats, history = answers.pop(0)
        return Roll(9, seats, (), history)

    async def fetch(door: Any, where: Address, generation: int) -> Given:
        return Given(where, "token", Checkpoint(generation, 1, {}, b"s%d" % len(tried)))

    async def unchanged(*_: object) -> bool:
        raise AssertionError("that is another group's state")

    for name, stub in (("knock", knock), ("fetch", fetch), ("unchanged", unchanged)):
        monkeypatch.setattr(seeking, name, stub)
    door = SimpleNamespace(address=None)
    house: Any = SimpleNamespace(life="own", me="a", door=door, check_private=list)
    seeker = Seeker(house, lambda: Standing(0, ""), tried.append)
    assert asyncio.run(seeker.enter([WHERE], wants=True)) is None
    assert asyncio.run(seeker.enter([WHERE], wants=True)) is None
    assert wishes == [False, True, True, True]
    entry = asyncio.run(seeker.enter([WHERE], wants=True))
    assert entry is not None
    assert entry.checkpoint == Checkpoint(9, 1, {}, b"s2")
    assert len(tried) == 2
