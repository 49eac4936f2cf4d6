"""Each property on runs that fit on a few lines: what holds, what breaks, what cannot be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from ordercast import oracle, pipeline
from ordercast.trace.directory import Trace
from ordercast.trace.verdicts import PROPERTIES, Judgement, Verdict

from ..conformance.verdicts import essence
from .builders import run, write
from .cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_wrong_is_found_and_nothing_else(case: Case, judgement: Judgement) -> None:
    verdicts = {one.property: one for one in judgement.verdicts if one.run == str(case)}
    assert tuple(verdicts) == PROPERTIES
    assert {
        told(one) for one in verdicts.values() if one.verdict != "holds" and case.tells(one)
    } == case.wrong
    assert all(one.witness is None for one in verdicts.values() if one.verdict == "holds")
    assert {name: verdicts[name].checked for name in case.checked} == case.checked


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_oracle_says_the_same(case: Case, judgement: Judgement) -> None:
    trace = Trace.of(case.run.manifest, case.run.events)
    for expected in oracle.judge(trace, PROPERTIES):
        (said,) = (
            one
            for one in judgement.verdicts
            if (one.run, one.property) == (expected.run, expected.property)
        )
        assert essence(said) == essence(expected)


def test_every_property_is_tried_in_every_way(judgement: Judgement) -> None:
    seen = {(one.property, one.verdict) for one in judgement.verdicts}
    outcomes = {(name, word) for name in PROPERTIES for word in ("holds", "violated", "unknown")}
    # What is there twice, or in two orders, is there, whatever the holes.
    always_told = ("no_duplication", "total_pairwise", "total_acyclic", "synchronous")
    assert outcomes - seen == {(name, "unknown") for name in always_told}


def test_numbers_may_be_as_great_as_there_are(tmp_path: Path) -> None:
    """And nothing warns of sums that are greater still."""
    top = 2**63 - 1
    trace = write(tmp_path / "t", [run("r", f"s{top} s5 d0:{top} d0:5", f"d0:5 d0:{top}")])
    judged = pipeline.judge(trace, here=True)
    broken = {one.property for one in judged.verdicts if one.verdict == "violated"}
    assert {"fifo", "causal"} < broken
    assert broken.isdisjoint({"no_creation", "agreement"})


def test_verdicts_come_by_run_and_property(judgement: Judgement) -> None:
    order = [(one.run, PROPERTIES.index(one.property)) for one in judgement.verdicts]
    assert order == sorted(order)
    assert judgement.runs == len(CASES)
    assert judgement.events == sum(len(case.run.events) for case in CASES)
    assert list(judgement.promises) == sorted(case.run.manifest.run for case in CASES)


def told(verdict: Verdict) -> str:
    seen = verdict.witness
    assert seen is not None
    what = f"{verdict.property} {verdict.verdict} {verdict.violations}"
    return f"{what}, p{seen.process} {' '.join(seen.messages)}: {seen.sentence}"
