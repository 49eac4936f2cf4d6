"""What is kept and known, next to a definition that looks at everyone each time."""

from __future__ import annotations

import copy
from random import Random

import pytest

from ordercast.protocols.messages import MessageId
from ordercast.protocols.retained import Retained


class Plain:
    """The same questions, answered from what everyone has."""

    def __init__(self, log: Retained) -> None:
        self.log = log
        self.buried: set[int] = set()

    def held_by(self, enough: int, origin: int) -> int:
        return sorted((known[origin] for known in self.log.known), reverse=True)[enough - 1]

    def kept(self, origin: int, ever: set[int]) -> set[int]:
        """Of those that ever came."""
        living = (row for process, row in enumerate(self.log.known) if process not in self.buried)
        everyone = min(row[origin] for row in living)
        return {number for number in ever if number > everyone}


@pytest.mark.parametrize("seed", range(40))
def test_answers_are_those_of_a_look_at_everyone(seed: int) -> None:
    chance = Random(seed)
    size = chance.choice([1, 2, 3, 5, 8])
    me, enough = chance.randrange(size), size // 2 + 1
    log = Retained(me, size)
    plain = Plain(log)
    sent = [0] * size
    ever: list[set[int]] = [set() for _ in range(size)]
    for _ in range(400):
        origin, other = chance.randrange(size), chance.randrange(size)
        step = chance.random()
        if step < 0.4:
            sent[origin] += chance.choice([0, 1, 3])
            number = chance.randint(1, max(sent[origin], 1))
            sent[origin] = max(sent[origin], number)
            id = MessageId(origin, number)
            if id not in log.received:
                log.add(id, f"{origin}:{number}")
                ever[origin].add(number)
            if origin != me:
                log.learn_from(id)
        elif step < 0.9 and other != me:
            log.learn(other, [chance.randint(0, most) for most in sent])
        elif step < 0.92 and other != me:
            log.bury(other)
            plain.buried.add(other)
        elif step < 0.95:
            log = plain.log = copy.deepcopy(log)  # by way of what a snapshot has
        for origin in range(size):
            assert log.held_by(enough, origin) == plain.held_by(enough, origin)
            log.forget(origin)
            assert log.items[origin].keys() == plain.kept(origin, ever[origin])


def test_what_only_saves_looks_is_in_no_snapshot() -> None:
    """Two that know the same are the same to the model checker."""
    assert {"laggard", "stable", "short"}.isdisjoint(Retained(0, 3).__getstate__())
