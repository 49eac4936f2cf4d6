"""Whatever the schedule, every algorithm keeps its promise; and every mutant is caught."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordercast.protocols import catalog

from .subjects import COMBINATIONS, TROUBLE, broken_promises, replay, run_once, traffic_kinds

SEEDS = st.integers(0, 2**32 - 1)
EXAMPLES = settings.default.max_examples // 10
"""Of each of some four hundred worlds: 10, and 200 in a long run."""


@pytest.mark.parametrize("trouble", TROUBLE)
@pytest.mark.parametrize(("ordering", "dissemination"), COMBINATIONS)
@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=SEEDS)
def test_promises_are_kept(ordering: str, dissemination: str, trouble: str, seed: int) -> None:
    faults = TROUBLE[trouble]
    promises = catalog.promises(ordering, dissemination, crashes="crash" in faults)
    for to in traffic_kinds(ordering, dissemination):
        trace = run_once(
            lambda me, size: catalog.build(ordering, dissemination, me, size),
            seed=seed,
            faults=faults,
            destinations=to,
        )
        assert trace.manifest.quiesced
        broken = broken_promises(trace, promises)
        size = len(trace.members)
        assert not broken, replay(ordering, dissemination, seed, faults, to, size)


def test_messages_are_really_held() -> None:
    """Otherwise the suite above would prove little: waiting is what these algorithms are for."""
    for ordering, dissemination in COMBINATIONS:
        if ordering in ("unordered", "causal_coordinator"):
            continue  # these deliver whatever arrives: the links have done the waiting
        held = 0
        for seed in range(10):
            trace = run_once(
                lambda me, size, names=(ordering, dissemination): catalog.build(*names, me, size),
                seed=seed,
                messages=6,
                destinations=traffic_kinds(ordering, dissemination)[0],
            )
            arrived = {
                (e.process, e.message): e.time_us for e in trace.events if e.kind == "receive"
            }
            held += sum(
                arrived.get((e.process, e.message), e.time_us) != e.time_us
                for e in trace.events
                if e.kind == "deliver"
            )
        assert held > 5, (ordering, dissemination, held)
