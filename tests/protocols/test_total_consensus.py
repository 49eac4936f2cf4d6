"""Consensus under suspicions that come at any time, rightly or wrongly, and crashes in mid-step."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from tests.seeds import often

from ordercast.errors import PeerError, UsageError
from ordercast.protocols import catalog
from ordercast.protocols.effects import Deliver, HostEffect, Transmit
from ordercast.protocols.messages import MessageId
from ordercast.protocols.orderings.total_consensus import Cut, Decided, Pull, Round, Vote

NAMES = ("total_consensus", "direct")


class Crowd:
    """A group in memory whose links lose nothing of those who stay up, and keep no order."""

    def __init__(self, size: int, seed: int) -> None:
        self.random = Random(seed)
        self.stacks = [catalog.build(*NAMES, me, size) for me in range(size)]
        self.up = set(range(size))
        self.links: list[tuple[int, int, Any]] = []
        self.delivered: list[list[MessageId]] = [[] for _ in range(size)]
        self.before: dict[MessageId, set[MessageId]] = {}
        """What happened before the sending of each message."""
        self.pasts: list[set[MessageId]] = [set() for _ in range(size)]

    def send(self, me: int) -> None:
        message, effects = self.stacks[me].send(b"", None)
        self.before[message.id] = set(self.pasts[me])
        self.pasts[me].add(message.id)
        self.perform(me, effects)

    def perform(self, me: int, effects: Iterable[HostEffect]) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                self.links += [(me, to, effect.packet) for to in effect.to]
            elif isinstance(effect, Deliver):
                id = effect.message.id
                self.delivered[me].append(id)
                self.pasts[me] |= {id, *self.before[id]}

    def crash(self, me: int) -> None:
        """Each of its packets that are under way arrives or not."""
        self.up.discard(me)
        chance = self.random.random()
        self.links = [link for link in self.links if link[0] != me or self.random.random() < chance]

    def arrive(self, place: int) -> None:
        self.links[place], self.links[-1] = self.links[-1], self.links[place]
        source, to, packet = self.links.pop()
        if to in self.up:
            self.perform(to, self.stacks[to].receive(source, packet))

    def suspect(self, me: int, other: int) -> None:
        self.perform(me, self.stacks[me].suspect(other))

    def trust(self, me: int, other: int) -> None:
        self.perform(me, self.stacks[me].trust(other))

    def at_random(self, *, crashes: int) -> None:
        random, size = self.random, len(self.stacks)
        me, other = random.sample(sorted(self.up), 2)
        dice = random.random()
        if dice < 0.2:
            self.send(me)
        elif dice < 0.24:
            self.suspect(me, random.choice(self.stacks[me].ordering.all_but(me)))
        elif dice < 0.28:
            self.trust(me, other)
        elif dice < 0.285 and size - len(self.up) < crashes:
            self.crash(me)
        elif self.links:
            self.arrive(random.randrange(len(self.links)))

    def rest(self) -> None:
        """The dead are suspected, and everything arrives. Of the others, one is suspected by
        nobody; about the rest, each goes on thinking what it thought."""
        trusted = {self.random.choice(sorted(self.up))} if self.random.random() < 0.5 else self.up
        for me in sorted(self.up):
            for other in self.stacks[me].ordering.all_but(me):
                if other not in self.up:
                    self.suspect(me, other)
                elif other in trusted:
                    self.trust(me, other)
        while self.links:
            self.arrive(self.random.randrange(len(self.links)))

    def check(self) -> None:
        up = sorted(self.up)
        whole = self.delivered[up[0]]
        for me, mine in enumerate(self.delivered):
            assert mine == (whole if me in self.up else whole[: len(mine)]), (me, whole, mine)
        assert len(set(whole)) == len(whole)
        seen: set[MessageId] = set()
        for id in whole:
            assert self.before[id] <= seen, f"{id} before {self.before[id] - seen}"
            seen.add(id)
        missed = {id for id in self.before if id.origin in self.up} - seen
        assert not missed, f"{missed} of members that are up were never delivered"


FOUND = (2915, 5290, 8832, 10177)
"""Stories in which a member could not fetch what only those had whom it suspected."""


@pytest.mark.parametrize("seed", sorted({*range(often(400, long=40_000)), *FOUND}))
def test_one_sequence_whatever_is_suspected(seed: int) -> None:
    size = 3 + seed % 5
    crowd = Crowd(size, seed)
    for _ in range(crowd.random.randrange(20, 400)):
        crowd.at_random(crashes=(size - 1) // 2)
    crowd.rest()
    crowd.check()
    # What is left waits for a message that was lost with its sender.
    left = [held for me in crowd.up for held in crowd.stacks[me].held()]
    assert all(held.waits_for and held.id.origin not in crowd.up for held in left)


def test_without_a_majority_nothing_is_delivered_and_members_say_whom_they_wait_for() -> None:
    crowd = Crowd(3, 0)
    crowd.crash(0)
    crowd.crash(2)
    for dead in (0, 2):
        crowd.suspect(1, dead)
    crowd.send(1)
    crowd.links.clear()
    assert crowd.delivered == [[], [], []]
    [held] = crowd.stacks[1].held()
    assert str(held) == "1:1, waiting for word from p0, p2"


def test_a_new_coordinator_stays_in_office() -> None:
    """What follows takes no more packets than before the change."""
    crowd = Crowd(3, 1)
    crowd.crash(0)
    for me in (1, 2):
        crowd.suspect(me, 0)
    crowd.send(1)
    crowd.rest()
    for _ in range(3):
        crowd.send(2)
        sent = 0
        while crowd.links:
            crowd.arrive(0)
            sent += 1
        assert sent == 2 + 2 + 2  # the message, the proposal and the other's vote
    assert crowd.delivered[1] == crowd.delivered[2]
    assert len(crowd.delivered[1]) == 4


def test_who_was_cut_off_learns_every_decision_in_order() -> None:
    crowd = Crowd(3, 2)
    late: list[tuple[int, int, Any]] = []
    for _ in range(1000):
        crowd.send(0)
        while crowd.links:
            late += [link for link in crowd.links if link[1] == 2]
            crowd.links = [link for link in crowd.links if link[1] != 2]
            if crowd.links:
                crowd.arrive(0)
    assert len(crowd.delivered[0]) == 1000
    assert not crowd.delivered[2]
    assert len(crowd.stacks[0].ordering.past) == 1000
    crowd.links = late[::-1]  # the last one first
    while crowd.links:
        crowd.arrive(0)
    crowd.check()
    assert [len(stack.ordering.past) for stack in crowd.stacks] == [1, 1, 1]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (Vote(0, 0, Cut((1, 0), 0)), "counts for 2 processes"),
        (Round(0, 1, 0, Cut((0, 0, 0, 0), 0)), "counts for 4 processes"),
        (Decided(1, Cut((0, 0, 0), 0)), "goes back behind what was decided"),
        (Pull(3, 0), "pulls messages of nobody"),
    ],
)
def test_nonsense_is_refused(item: Any, said: str) -> None:
    crowd = Crowd(3, 3)
    crowd.send(0)
    while crowd.links:
        crowd.arrive(0)
    with pytest.raises(PeerError, match=said):
        crowd.stacks[0].receive(1, item)


def test_nonsense_about_later_instances_does_no_harm() -> None:
    crowd = Crowd(3, 4)
    for _ in range(2):
        crowd.send(0)
        while crowd.links:
            crowd.arrive(0)
    crowd.perform(1, crowd.stacks[1].receive(2, Decided(3, Cut((0, 0, 0), 0))))
    for _ in range(3):
        crowd.send(0)
        while crowd.links:
            crowd.arrive(0)
    crowd.check()


@pytest.mark.parametrize("reliability", [None, "uniform", "reliable"])
def test_it_is_what_total_order_means_where_crashes_must_not_matter(
    reliability: str | None,
) -> None:
    assert catalog.choose("total", reliability) == NAMES
    assert catalog.choose("total") == ("total_coordinator", "direct")


def test_it_carries_broadcasts_only() -> None:
    with pytest.raises(UsageError, match="choose total_coordinator over direct"):
        catalog.build(*NAMES, 0, 3).send(b"", [1])
