"""Check the measuring: dict loops over small traces come to the same numbers, to the last digit."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from ordercast import pipeline
from ordercast.pipeline.costs import COSTS, THROUGHPUT
from ordercast.pipeline.results import TABLES
from ordercast.pipeline.schemas import spark_schema
from ordercast.protocols import catalog
from ordercast.sweep.measures import measure
from ordercast.trace.event import Event
from ordercast.trace.parquet import to_table

from ..conformance.random_traces import random_trace
from ..conformance.subjects import TROUBLE, run_once
from .loops import Row, expected_costs, expected_throughput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUBJECTS = [
    ("unordered", "relay", "everyone"),
    ("causal_vector", "best_effort", "everyone"),
    ("causal_coordinator", "direct", "some"),
    ("total_skeen", "direct", "some"),
    ("synchronous", "direct", "one"),
]


def simulated() -> Iterator[list[Event]]:
    for ordering, dissemination, to in SUBJECTS:
        for trouble, faults in TROUBLE.items():

            def build(
                me: int, size: int, names: tuple[str, str] = (ordering, dissemination)
            ) -> Any:
                return catalog.build(*names, me, size)

            run = f"{ordering}, {trouble}"
            yield sized(run_once(build, seed=5, faults=faults, destinations=to, run=run).events)
    for seed in range(30):
        yield sized(random_trace(seed, f"broken {seed}").events)


def sized(events: Iterable[Event]) -> list[Event]:
    """With payloads that are not all alike."""
    return [msgspec.structs.replace(e, bytes=e.bytes and 8 * (e.number or 0)) for e in events]


# What can be wrong with the clocks and columns of a log, beside everything that happened in it.


def skewed(event: Event, random: Random) -> Event:
    """Every process has a clock of its own, and they differ by more than a message takes."""
    return later(event, 10**15 - 40_000 * event.process)


def jumping(event: Event, random: Random) -> Event:
    """Clocks go backwards now and then."""
    return later(event, random.randint(0, 30_000))


def later(event: Event, us: int) -> Event:
    time_us = None if event.time_us is None else event.time_us + us
    return msgspec.structs.replace(event, time_us=time_us)


def forgetful(event: Event, random: Random) -> Event:
    """Some times and sizes are missing."""
    lost = [name for name in ("time_us", "bytes", "control_bytes") if random.random() < 0.4]
    return msgspec.structs.replace(event, **dict.fromkeys(lost))


def timeless(event: Event, random: Random) -> Event:
    return msgspec.structs.replace(event, time_us=None)


def without_receives(event: Event, random: Random) -> Event | None:
    return None if event.kind == "receive" else event


FATES: list[Callable[[Event, Random], Event | None]] = [
    *(skewed, jumping, forgetful, timeless, without_receives),
]


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """Every run twice: as it is, and with something wrong with its log."""
    random = Random(1)
    found: list[Event | None] = []
    for run, fate in zip(simulated(), cycle(FATES), strict=False):
        found += run
        named = [msgspec.structs.replace(e, run=f"{e.run}, {fate.__name__}") for e in run]
        found += [fate(event, random) for event in named]
    return [event for event in found if event is not None]


@pytest.fixture(scope="module")
def results(spark: SparkSession, events: list[Event]) -> Iterator[Any]:
    frame = spark.createDataFrame(to_table(events))
    runs = spark.createDataFrame([], spark_schema(TABLES["runs"]))
    found = pipeline.verify(spark, frame, runs.select("run"), properties=["fifo"])
    yield found
    found.release()


@pytest.fixture(scope="module")
def costs(results: Any) -> list[Row]:
    table = results.table("costs")
    assert table.columns == COSTS.names
    return rows(table)


def rows(frame: DataFrame) -> list[Row]:
    return [row.asDict() for row in frame.collect()]


def by_key(table: Iterable[Row], *names: str) -> dict[tuple[Any, ...], Row]:
    found = {tuple(row[name] for name in names): row for row in table}
    return dict(sorted(found.items(), key=lambda item: str(item[0])))


def test_costs_are_what_loops_over_the_rows_find(costs: list[Row], events: list[Event]) -> None:
    found = by_key(costs, "run", "process", "class")
    expected = by_key(expected_costs(events), "run", "process", "class")
    assert list(found) == list(expected)
    for key, row in expected.items():
        assert found[key] == row, key
    for name in set(COSTS.names) - {"run", "process", "deliveries"}:
        column = [row[name] for row in found.values()]
        assert None in column, f"no {name} is null: a bland sample"
        assert len(set(column)) > 3, f"every {name} is alike: a bland sample"


def test_rows_travel_twice_and_no_window_looks_ahead(results: Any) -> None:
    plan = results.table("costs")._jdf.queryExecution().executedPlan().toString()
    exchanges = re.findall(r"Exchange hashpartitioning\((.*?), \d+\), (\w+)", plan)
    travels = [re.sub(r"#\w+", "", keys) for keys, why in exchanges if why == "REPARTITION_BY_COL"]
    assert travels == ["run, process", "number, origin, run"]
    assert len(exchanges) == 3, "beside these, only the ends of each log"
    assert "unboundedpreceding" in plan
    assert "unboundedfollowing" not in plan


def test_throughput_is_what_loops_over_the_rows_find(results: Any, events: list[Event]) -> None:
    table = results.table("throughput")
    assert table.columns == THROUGHPUT.names
    found = by_key(rows(table), "run", "process", "bucket_us")
    assert found == by_key(expected_throughput(events), "run", "process", "bucket_us")
    widths = {row["width_us"] for row in found.values()}
    assert {1_000, 10_000, None} <= widths


def test_sweeps_measure_the_same(costs: list[Row], events: list[Event]) -> None:
    """Where all messages of a run are of one class, so that the two can be compared."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in costs:
        found[row["run"]].append(row)
    names = sorted(f"{ordering}, {trouble}" for ordering, _, _ in SUBJECTS for trouble in TROUBLE)
    plain = [event for event in events if event.run in names]
    plain.sort(key=lambda event: (event.run, event.process, event.position))
    number = np.array([names.index(event.run) for event in plain])
    said = measure(to_table(plain), number, len(names))
    compared = 0
    for index, run in enumerate(names):
        if len({row["class"] for row in found[run]}) > 1:
            continue
        compared += 1
        for name, theirs in (
            ("latency_max_us", "latency_us_max"),
            ("held_max_us", "hold_us_max"),
            ("depth_max", "held_max"),
        ):
            ours = [row[name] for row in found[run] if row[name] is not None]
            assert max(ours, default=None) == said[theirs][index].as_py(), (run, name)
    assert compared > 20
