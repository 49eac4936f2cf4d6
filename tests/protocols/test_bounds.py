"""Protocols stay within bounds: what they remember does not grow with the length of the run."""

from __future__ import annotations

import pickle

import pytest
from benchmarks.group import Group
from tests.seeds import often

from ordercast.protocols import catalog

SHORT, LONG = 10_000, often(40_000, long=100_000)
"""Packets that the members of a group have handled together."""


def remembered(group: Group) -> int:
    """Bytes: pickle goes through everything that the protocol objects hold, each object once."""
    return len(pickle.dumps(group.stacks))


def most_remembered(group: Group, packets: int) -> int:
    """The most at any of a number of moments while so many packets are handled."""
    moments = 20
    sizes = []
    for _ in range(moments):
        group.run(packets // moments)
        sizes.append(remembered(group))
    return max(sizes)


def check(ordering: str, dissemination: str, long: int, packet_us: int) -> Group:
    options = {"size": 3, "subsets": True, "packet_us": packet_us}
    brief = Group(ordering, dissemination, seed=0, **options)
    most_early = most_remembered(brief, SHORT)
    brief.rest()

    group = Group(ordering, dissemination, seed=1, **options)
    group.run(long - SHORT)
    most_late = most_remembered(group, SHORT)
    group.rest()

    assert group.packets >= long
    assert group.delivered == group.addressed
    assert not any(stack.held() for stack in group.stacks)
    # Under way, chance has a hand in it; at rest, only what will never be forgotten is left.
    assert most_late < 3 * most_early
    assert remembered(group) < 1.2 * remembered(brief)
    return group


@pytest.mark.parametrize(("ordering", "dissemination"), catalog.combinations())
def test_memory_does_not_grow(ordering: str, dissemination: str) -> None:
    # Each layer gets the whole length once; for the other pairs a part of it shows as much.
    alone = ordering == "unordered" or dissemination == "direct"
    check(ordering, dissemination, LONG if alone else 2 * SHORT, packet_us=100)


@pytest.mark.parametrize(
    ("ordering", "dissemination", "packets"),
    [("causal_vector", "best_effort", 2), ("causal_history", "majority_acks", 4)],
)
def test_a_hundred_thousand_messages(ordering: str, dissemination: str, packets: int) -> None:
    """And more in a long run. Each of them takes so many `packets`."""
    messages = often(50_000 if packets > 2 else 100_000, long=200_000)
    group = check(ordering, dissemination, messages * packets, packet_us=100)
    assert group.delivered >= messages * 3


@pytest.mark.parametrize("dissemination", ["majority", "majority_acks", "gossip"])
def test_memory_does_not_grow_when_patience_runs_out(dissemination: str) -> None:
    check("unordered", dissemination, 25_000, packet_us=5_000)
