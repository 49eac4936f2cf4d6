"""Sentences for many witnesses at once: each has the words of its own run, and no other's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ordercast.pipeline.kernels import findings as f
from ordercast.pipeline.sentences import Names, Seen, Steps, cycles, witnesses

NAMES = Names(
    pa.chunked_array(
        [
            pa.array([["ann", "bob"], None], pa.list_(pa.string())),
            pa.array([[], ["eve"]], pa.list_(pa.string())),
        ]
    )
)
"""Of four runs: only the first one names everyone."""


def told(name: str, *rows: dict[str, int]) -> list[dict[str, Any]]:
    columns = {field: np.array([row[field] for row in rows]) for field in rows[0]}
    found: list[dict[str, Any]] = witnesses(name, Seen(**columns), NAMES).to_pylist()
    return found


def sentences(name: str, *rows: dict[str, int]) -> list[str]:
    return [one["sentence"] for one in told(name, *rows)]


def test_a_process_without_a_name_is_called_by_its_number() -> None:
    places = [(0, 1), (1, 1), (2, 0), (3, 0), (3, 1)]
    run, process = np.array(places).T
    assert NAMES.of(run, process).to_pylist() == ["bob", "p1", "p0", "eve", "p1"]


@pytest.mark.parametrize("name", ["agreement", "uniform_agreement"])
def test_every_excuse_is_of_its_own_run(name: str) -> None:
    one = {"process": 1, "origin": 0, "number": 7, "by": 0}
    owed = "to which it is addressed, never did"
    assert sentences(
        name,
        one | {"run": 0, "unknown": False, "complete": False},
        one | {"run": 1, "unknown": True, "complete": True},
        one | {"run": 3, "unknown": True, "complete": False},
    ) == [
        f"ann delivered 0:7, but bob, {owed}",
        f"p0 delivered 0:7, but p1, {owed}, and the run has not come to rest",
        f"eve delivered 0:7, but p1, {owed}, and the log has holes",
    ]


def test_what_was_not_sent() -> None:
    one = {"run": 0, "process": 0, "origin": 1, "number": 2}
    assert sentences(
        "no_creation",
        one | {"missing": False, "unknown": False},
        one | {"missing": True, "unknown": False},
        one | {"missing": True, "unknown": True},
    ) == [
        "ann delivered 1:2, which is not addressed to it",
        "ann delivered 1:2, which bob never sent",
        "ann delivered 1:2, whose send is not in the log of bob",
    ]


def test_what_was_not_delivered() -> None:
    one = {"run": 0, "origin": 1, "number": 2, "unknown": False, "complete": True}
    assert sentences("validity", one | {"process": 1}, one | {"process": 0}) == [
        "bob sent 1:2 and never delivered it itself",
        "bob sent 1:2 to ann, which never delivered it",
    ]


def test_how_one_message_came_before_the_other() -> None:
    one = {
        "run": 0, "process": 0, "origin": 0, "number": 1, "after": 1, "later": 5,
        "unknown": False, "complete": True,
    }  # fmt: skip
    found = told(
        "causal",
        one | {"link": f.SENT, "missing": True},
        one | {"link": f.DELIVERED, "missing": False},
        one | {"link": f.INDIRECT, "missing": False},
    )
    assert [row["sentence"] for row in found] == [
        "bob sent 0:1 and then 1:5, but ann delivered 1:5 and never 0:1",
        "bob delivered 0:1 and then sent 1:5, but ann delivered 1:5 before 0:1",
        "0:1 happened before 1:5, but ann delivered 1:5 before 0:1",
    ]
    assert {(row["process"], *row["messages"]) for row in found} == {(0, "0:1", "1:5")}


def test_a_crossed_pair_is_told_from_the_side_of_whoever_had_it_first() -> None:
    one = {"run": 0, "process": 1, "origin": 0, "number": 1, "after": 1, "later": 2, "by": 0}
    uncounted = " (there are more such pairs than were counted)"
    assert sentences(
        "total_pairwise",
        one | {"link": f.FIRST, "exact": True},
        one | {"link": f.SECOND, "exact": False},
    ) == [
        "ann delivered 0:1 before 1:2, but bob delivered 1:2 before 0:1",
        f"ann delivered 1:2 before 0:1, but bob delivered 0:1 before 1:2{uncounted}",
    ]


def test_cycles_of_any_length_close_where_they_began() -> None:
    steps = Steps(
        start=np.array([0, 2]),
        run=np.array([0, 0, 1, 1, 1]),
        origin=np.array([0, 1, 0, 1, 2]),
        number=np.array([1, 1, 4, 5, 6]),
        member=np.array([0, 1, 2, 0, 1]),
        sent_too=np.array([False, False, True, True, True]),
    )
    assert cycles(steps, NAMES).to_pylist() == [
        {
            "process": 0,
            "messages": ["0:1", "1:1"],
            "sentence": "no one order fits: ann delivered 0:1 before 1:1, "
            "bob delivered 1:1 before 0:1",
        },
        {
            "process": 2,
            "messages": ["0:4", "1:5", "2:6"],
            "sentence": "no one order fits: p2 had 0:4 before 1:5, p0 had 1:5 before 2:6, "
            "p1 had 2:6 before 0:4",
        },
    ]


def test_a_cycle_of_one_process_says_nothing_that_numbers_cannot_tell() -> None:
    steps = Steps(
        start=np.array([0, 2, 4]),
        run=np.array([0, 0, 0, 0, 0, 0]),
        origin=np.array([0, 0, 0, 1, 0, 1]),
        number=np.array([1, 2, 1, 1, 1, 1]),
        member=np.array([0, 0, 0, 0, 0, 1]),
        sent_too=np.ones(6, np.bool_),
    )
    told = [row["sentence"].partition(": ")[2] for row in cycles(steps, NAMES).to_pylist()]
    assert told == [
        "ann had 0:1 both before and after 0:2",
        "ann had 0:1 both before and after 1:1",
        "ann had 0:1 before 1:1, bob had 1:1 before 0:1",
    ]
