"""All interleavings of small worlds, for every combination of the catalog."""

from __future__ import annotations

import pytest

from ordercast.protocols import catalog
from tests.conftest import EXPLORED

from .killers import BROADCASTS, SUBSETS, UNICASTS, Program, model_check
from .subjects import COMBINATIONS, traffic_kinds

WORLDS: list[tuple[str, Program, int]] = [
    ("two broadcasts", BROADCASTS[0], 0),
    ("two broadcasts and a crash", BROADCASTS[0], 1),
    ("three broadcasts", BROADCASTS[1], 0),
    *((f"subsets {index}", program, 0) for index, program in enumerate(SUBSETS)),
    ("subsets and a crash", SUBSETS[0], 1),
    *((f"unicasts {index}", program, 0) for index, program in enumerate(UNICASTS)),
    ("unicasts and a crash", UNICASTS[0], 1),
]
STATES_MAX = 40_000
PART = 6_000
"""Of those that have more; how far a search gets that does not end is a matter of time only."""
TOO_MANY = {
    ("majority", "two broadcasts and a crash"),
    ("majority", "three broadcasts"),
    ("gossip", "two broadcasts and a crash"),
    ("gossip", "three broadcasts"),
    ("majority_acks", "two broadcasts and a crash"),
    ("total_skeen", "three broadcasts"),
    ("total_skeen", "subsets 2"),
    ("total_lamport", "subsets 1"),
    ("total_lamport", "subsets and a crash"),
    ("total_consensus", "two broadcasts and a crash"),
    ("total_consensus", "three broadcasts"),
}
"""Worlds with more states than the limit, which are searched only in part."""

CASES = [
    (ordering, dissemination, name)
    for ordering, dissemination in COMBINATIONS
    for name, _, _ in WORLDS
    if (name.split()[0] == "unicasts") == (traffic_kinds(ordering, dissemination) == ["one"])
    and (name.split()[0] != "subsets" or "some" in traffic_kinds(ordering, dissemination))
]


@pytest.mark.parametrize(("ordering", "dissemination", "world"), CASES)
def test_no_interleaving_breaks_a_promise(
    ordering: str, dissemination: str, world: str, request: pytest.FixtureRequest
) -> None:
    _, program, crashes = next(entry for entry in WORLDS if entry[0] == world)
    too_many = bool({(ordering, world), (dissemination, world)} & TOO_MANY)
    found = model_check(
        lambda me, size: catalog.build(ordering, dissemination, me, size),
        program,
        catalog.promises(ordering, dissemination, crashes=crashes > 0),
        crashes=crashes,
        states_max=PART if too_many else STATES_MAX,
    )
    assert found.failure is None, "\n".join(found.failure)
    assert found.finals > 0
    assert found.complete or too_many
    request.config.stash.setdefault(EXPLORED, []).append(found.states)
