"""What is combined, what is left out, and what makes a run the same run."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from ordercast.errors import UsageError
from ordercast.protocols import catalog
from ordercast.sweep import configuration
from ordercast.sweep.block import cut
from ordercast.sweep.configuration import Configuration, combine

BASE: dict[str, Any] = {
    "orderings": ["fifo"],
    "disseminations": None,
    "processes": [3],
    "messages": 2,
    "payload": 16,
    "to": None,
    "faults": [""],
    "threshold": None,
}
SOME = Configuration("fifo", "direct", 3, 2)


def test_everything_is_combined_with_everything() -> None:
    made, left_out = combine(
        **BASE
        | {"orderings": ["fifo", "causal_matrix"], "processes": [3, 5], "faults": ["", "loss:5%"]}
        | {"disseminations": ["direct", "relay"]}
    )
    assert len(made) == 16
    assert not left_out


def test_what_the_catalog_refuses_is_left_out() -> None:
    everything = {
        "orderings": list(catalog.ORDERINGS),
        "disseminations": list(catalog.DISSEMINATIONS),
    }
    made, [left_out] = combine(**BASE | everything)
    assert [(one.ordering, one.dissemination) for one in made] == catalog.combinations()
    assert left_out.count + len(made) == len(catalog.ORDERINGS) * len(catalog.DISSEMINATIONS)
    others = left_out.count - 1
    assert re.fullmatch(
        rf"left out: \w+ talks to chosen processes, .* \(and {others} more like it\)", str(left_out)
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"orderings": ["fifo", "causal_vector"], "to": ["some"]},
            "causal_vector sends to everyone only",
        ),
        (
            {"disseminations": ["direct", "relay"], "to": ["some"]},
            "relay sends to everyone only",
        ),
        ({"processes": [3, 5], "faults": ["crash:4@1ms"]}, "names process 4 in a group of 3"),
        ({"disseminations": ["relay", "majority"], "threshold": 2}, "takes no threshold"),
    ],
)
def test_each_reason_is_told(change: dict[str, Any], reason: str) -> None:
    made, [left_out] = combine(**BASE | change)
    assert len(made) == 1
    assert left_out.count == 1
    assert reason in left_out.reason


def test_if_nothing_is_left_it_is_said_why() -> None:
    with pytest.raises(UsageError, match="nothing to sweep: relay sends to everyone only"):
        combine(**BASE | {"disseminations": ["relay"], "to": ["one"]})


def test_a_fault_plan_that_nobody_understands_is_not_just_left_out() -> None:
    with pytest.raises(UsageError, match="'rain' has none of the forms"):
        combine(**BASE | {"faults": ["", "rain"]})


def test_without_a_choice_each_ordering_gets_what_suits_it() -> None:
    made, _ = combine(**BASE | {"orderings": ["synchronous", "causal_vector"]})
    assert [(one.dissemination, one.to) for one in made] == [
        *(("direct", "one"), ("best_effort", "everyone"))
    ]


def test_a_key_tells_configurations_and_versions_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replace(SOME).key == SOME.key
    changes: dict[str, Any] = {
        "ordering": "unordered",
        "dissemination": "relay",
        "processes": 4,
        "messages": 3,
        "payload": 17,
        "to": "some",
        "faults": "fifo",
        "threshold": 2,
    }
    changed = [replace(SOME, **{name: value}) for name, value in changes.items()]
    keys = {one.key for one in [SOME, *changed]}
    monkeypatch.setattr(configuration, "__version__", "next")
    assert len(keys | {SOME.key}) == len(changed) + 2


def test_blocks_hold_every_run_once_and_not_too_many_of_them() -> None:
    large = Configuration("causal_vector", "relay", 5, 20)
    work_max = 10 * SOME.work
    blocks = cut([(SOME, range(25)), (large, range(3))], work_max)
    runs = [(one, seed) for block in blocks for one, seeds in block.parts for seed in seeds]
    assert runs == [*((SOME, seed) for seed in range(25)), *((large, seed) for seed in range(3))]
    for block in blocks:
        *others, last = [one.work for one, seeds in block.parts for _ in seeds]
        assert sum(others) < work_max, last
    assert len({block.name for block in blocks}) == len(blocks) == 5
