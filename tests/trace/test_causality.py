"""Happens-before, compared with the literal definition, and its chains checked step by step."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from random import Random

import pytest
from tests.conformance.random_traces import knotted_trace, random_trace
from tests.pipeline.builders import run

from ordercast.oracle.run import Run
from ordercast.trace.causality import Causality, Step
from ordercast.trace.directory import Trace
from ordercast.trace.runs import Id, parse_id


def indexed(trace: Trace, here: int | None = None) -> Causality:
    causality = Causality(here=here)
    events = list(trace.events)
    Random(1).shuffle(events)
    for event in events:
        causality.add(event)
    return causality.settle()


def traces() -> list[Trace]:
    return [make(seed, "r") for seed in range(40) for make in (random_trace, knotted_trace)]


def by_hand(*logs: str) -> Causality:
    one = run("r", *logs)
    return indexed(Trace.of(one.manifest, one.events))


def told(steps: list[Step]) -> list[str]:
    return [f"{step.process}@{step.position} {step.kind} {step.message}" for step in steps]


def fewest_messages(trace: Trace, earlier: Id, later: Id) -> int | None:
    """How many deliveries a chain needs, by relaxing every edge until nothing changes."""
    sends = Run(trace).sends
    events = [e for e in trace.events if e.kind in ("send", "deliver")]
    cost: dict[tuple[int, int], int] = {}
    at = {(e.process, e.position): e for e in events}
    goal = (sends[earlier].process, sends[earlier].position)
    cost[goal] = 0
    changed = True
    while changed:
        changed = False
        for point, event in at.items():
            ways = [cost[p] for p in at if p in cost and p[0] == point[0] and p[1] < point[1]]
            if event.kind == "deliver" and event.message in sends:
                send = sends[event.message]
                if (send.process, send.position) in cost:
                    ways.append(cost[send.process, send.position] + 1)
            if ways and min(ways) < cost.get(point, len(at) + 1):
                cost[point] = min(ways)
                changed = True
    return cost.get((sends[later].process, sends[later].position))


@pytest.mark.parametrize("trace", traces())
def test_the_relation_is_the_one_of_the_definition(trace: Trace) -> None:
    causality, past = indexed(trace), Run(trace).past
    for m, n in permutations(past, 2):
        assert bool(causality.chain(m, n)) == (m in past[n])


@pytest.mark.parametrize("trace", traces()[:24])
def test_chains_are_chains_and_none_is_shorter(trace: Trace) -> None:
    causality = indexed(trace)
    at = {(e.process, e.position): e for e in trace.events}
    for m, n in permutations(Run(trace).sends, 2):
        steps = causality.chain(m, n)
        assert all(
            (e := at[s.process, s.position]).kind == s.kind and e.message == parse_id(s.message)
            for s in steps
        )
        for one, two in pairwise(steps):
            if (one.kind, two.kind) == ("send", "deliver"):
                assert one.message == two.message
            else:
                assert one.process == two.process
                assert one.position < two.position
        if steps:
            assert parse_id(steps[0].message) == m
            assert parse_id(steps[-1].message) == n
            assert sum(s.kind == "deliver" for s in steps) == fewest_messages(trace, m, n)


@pytest.mark.parametrize("trace", traces())
def test_what_is_unmet_is_what_causal_order_forbids(trace: Trace) -> None:
    oracle = Run(trace)
    for here, n in product(trace.members, oracle.sends):
        causality = indexed(trace, here)
        position = oracle.first(here, n)
        if position is not None:
            missing = {
                m
                for m in oracle.past[n]
                if oracle.addressed(m, here) and not oracle.delivered_before(here, m, position)
            }
            assert set(causality.unmet(n, position)) == missing


def test_the_message_itself_is_a_shorter_way_than_the_one_after_it() -> None:
    assert told(by_hand("s1 s2", "d0:2 d0:1 s1").chain((0, 1), (1, 1))) == [
        "0@0 send 0:1",
        "1@1 deliver 0:1",
        "1@2 send 1:1",
    ]


def test_a_later_message_of_the_sender_carries_it_too() -> None:
    assert told(by_hand("s1>2 s2", "d0:2 s1").chain((0, 1), (1, 1))) == [
        "0@0 send 0:1",
        "0@1 send 0:2",
        "1@0 deliver 0:2",
        "1@1 send 1:1",
    ]


def test_one_message_less_wins_over_an_earlier_delivery() -> None:
    steps = by_hand("s1", "d0:1 s1", "d1:1 d0:1 s1").chain((0, 1), (2, 1))
    assert told(steps) == ["0@0 send 0:1", "2@1 deliver 0:1", "2@2 send 2:1"]


def test_arrivals_do_not_count() -> None:
    assert by_hand("s1", "r0:1 s1 d0:1").chain((0, 1), (1, 1)) == []
