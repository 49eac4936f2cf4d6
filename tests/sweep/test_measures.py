"""The arrays of `measures` against the same figures counted event by event."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from ordercast.protocols import catalog
from ordercast.simulator.run import simulate
from ordercast.sweep.block import Block, work_off
from ordercast.sweep.configuration import Configuration, combine
from ordercast.sweep.histogram import bucket_of
from ordercast.trace.event import Event

SEEDS = (1, 10)
CONFIGURATIONS = [
    *combine(
        orderings=list(catalog.ORDERINGS),
        disseminations=list(catalog.DISSEMINATIONS),
        processes=[3, 4],
        messages=2,
        payload=16,
        to=None,
        faults=["", "crash:1#7, loss:20%"],
        threshold=None,
    )[0],
    Configuration("causal_matrix", "direct", 4, 6, to="some", faults="duplicate:30%"),
    Configuration("total_coordinator", "direct", 4, 5, to="some"),
    Configuration("unordered", "gossip", 3, 0),
]


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, int], dict[str, Any]]:
    """All in one block: neighbours of other sizes must not show."""
    block = Block(tuple((one, SEEDS) for one in CONFIGURATIONS))
    table = pq.read_table(io.BytesIO(work_off(block, traces=False).runs))
    return {(row["configuration"], row["seed"]): row for row in table.to_pylist()}


@pytest.mark.parametrize("one", CONFIGURATIONS, ids=str)
def test_each_figure_is_what_counting_one_by_one_gives(
    one: Configuration, measured: dict[tuple[str, int], dict[str, Any]]
) -> None:
    for seed in SEEDS:
        expected = counted(one, seed)
        assert {name: measured[one.key, seed][name] for name in expected} == expected


def counted(one: Configuration, seed: int) -> dict[str, Any]:
    events: list[Event] = []
    ending = simulate(
        one.plan(seed), build=lambda me, _: one.build(me, seed), run="r", write=events.append
    )
    sends = {event.message: event for event in events if event.kind == "send"}
    receives = [event for event in events if event.kind == "receive"]
    delivers = [event for event in events if event.kind == "deliver"]
    latencies = [
        time(event) - time(sends[event.message])
        for event in delivers
        if event.process != event.origin
    ]
    waits = []
    held = []
    for arrival in first_of_each(receives):
        key = arrival.process, arrival.message
        done = next((e for e in delivers if (e.process, e.message) == key), None)
        if done is None and addressed(sends[arrival.message], arrival.process):
            held.append((arrival.process, arrival.position, float("inf")))
        if done is not None and done.position > arrival.position:
            waits.append(time(done) - time(arrival))
            if waits[-1] > 0:
                held.append((arrival.process, arrival.position, done.position))
    return {
        "quiesced": ending.quiesced,
        "events": len(events),
        "sent": len(sends),
        "delivered": len(delivers),
        "received": len(receives),
        "control_bytes": sum(event.control_bytes or 0 for event in receives),
        "held_max": max(
            (sum(p == q and s <= at < e for q, s, e in held) for p, at, _ in held), default=0
        ),
        **histogram("latency", latencies),
        **histogram("hold", waits),
    }


def first_of_each(receives: list[Event]) -> list[Event]:
    return list({(e.process, e.message): e for e in reversed(receives)}.values())


def addressed(send: Event, process: int) -> bool:
    return send.destinations is None or process in send.destinations


def time(event: Event) -> int:
    assert event.time_us is not None
    return event.time_us


def histogram(name: str, values: list[int]) -> dict[str, Any]:
    counts = Counter(bucket_of(np.array(values, np.int64)).tolist())
    return {
        f"{name}_buckets": sorted(counts),
        f"{name}_counts": [counts[bucket] for bucket in sorted(counts)],
        f"{name}_us_max": max(values, default=None),
    }
