"""Simulating from Python: the public names, and a trace that says what was run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast import simulator
from ordercast.errors import UsageError
from ordercast.oracle import judge
from ordercast.protocols import catalog
from ordercast.simulator import Crash, Network, Plan, Traffic, record
from ordercast.trace import Trace, TraceWriter

PLAN = Plan(3, 7, Network(loss=0.1), traffic=Traffic(4))


def test_every_public_name_is_there() -> None:
    for name in simulator.__all__:
        assert getattr(simulator, name) is not None


def test_a_plan_gives_the_same_trace_each_time() -> None:
    assert record(PLAN) == record(PLAN)
    assert record(PLAN) != record(Plan(3, 8, Network(loss=0.1), traffic=Traffic(4)))


def test_people_choose_by_the_words_of_join() -> None:
    manifest = record(PLAN, order="total", run="mine").manifest
    assert (manifest.run, manifest.order, manifest.dissemination) == (
        *("mine", "total_coordinator"),
        "direct",
    )
    assert record(PLAN, reliability="uniform").manifest.dissemination == "majority_acks"
    with pytest.raises(UsageError, match="no order 'best'"):
        record(PLAN, order="best")


def test_the_manifest_promises_what_was_run_and_the_run_keeps_it() -> None:
    crashed = Plan(3, 7, crashes=(Crash(2, at_us=20_000),), traffic=Traffic(4))
    trace = record(crashed, reliability="uniform")
    promised = trace.manifest.extra["promises"]
    assert {"causal", "uniform_agreement"} <= set(promised)
    assert trace.manifest.quiesced
    verdicts = {verdict.property: verdict.verdict for verdict in judge(trace)}
    assert [verdicts[name] for name in promised] == ["holds"] * len(promised)
    assert "uniform_agreement" not in record(crashed).manifest.extra["promises"]


@pytest.mark.parametrize(
    ("order", "reliability", "threshold", "rest"),
    [
        ("causal", "uniform", None, False),
        ("total", "uniform", None, False),
        ("fifo", "majority", 1, True),  # one is enough, says whoever chose that
        ("causal", "reliable", None, True),
        ("total", "best_effort", None, True),  # waits for process 0 alone
    ],
)
def test_a_run_that_lost_its_majority_has_not_come_to_rest(
    order: str, reliability: str, threshold: int | None, rest: bool
) -> None:
    crashes = (Crash(1, at_us=5_000), Crash(2, at_us=8_000))
    plan = Plan(3, 7, crashes=crashes, traffic=Traffic(4))
    trace = record(plan, order=order, reliability=reliability, threshold=threshold)
    assert trace.manifest.quiesced is rest
    promised = trace.manifest.extra["promises"]
    outcomes = {v.property: v.verdict for v in judge(trace, promised)}
    assert "violated" not in outcomes.values()
    if not rest:
        assert outcomes["validity"] == "unknown"


@pytest.mark.parametrize("dead", range(3))
@pytest.mark.parametrize("ordering", catalog.ORDERINGS)
def test_the_catalog_knows_whose_crash_leaves_others_waiting(ordering: str, dead: int) -> None:
    to = catalog.ORDERINGS[ordering].destinations
    traffic = Traffic(20, destinations="one" if to == "one" else "everyone")
    plan = Plan(3, 7, crashes=(Crash(dead, at_us=40_000),), traffic=traffic)
    manifest = record(plan, order=ordering).manifest
    assert manifest.quiesced
    waiting = {wait["process"] for wait in manifest.extra["waiting"]} - {dead}
    assert bool(waiting) == (catalog.forsaken(ordering, {dead}) is not None)


def test_it_can_be_written_and_read_again(tmp_path: Path) -> None:
    trace = record(PLAN)
    with TraceWriter(tmp_path / "out") as writer:
        writer.write_all(trace.events)
        writer.add_manifest(trace.manifest)
    assert Trace.load(tmp_path / "out") == [trace]
