"""Runs in memory, judged in this process: as the oracle does, and of sizes that it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgspec
import pytest
from numba.core.dispatcher import Dispatcher

from ordercast.errors import TraceError
from ordercast.oracle import judge
from ordercast.pipeline import judging
from ordercast.pipeline.here import judge_run
from ordercast.pipeline.kernels import run as running
from ordercast.pipeline.kernels.kernel import WORTH_COMPILING, Kernel, kernel
from ordercast.protocols import catalog
from ordercast.trace import Event, Manifest, Trace
from ordercast.trace.verdicts import Verdict

from ..conformance.random_traces import knotted_trace, random_trace
from ..conformance.subjects import run_once
from ..conformance.verdicts import essence


@pytest.mark.parametrize("make", [random_trace, knotted_trace])
def test_it_says_what_the_oracle_says(make: Callable[[int, str], Trace]) -> None:
    for seed in range(150):
        trace = make(seed, f"run {seed}")
        assert list(map(essence, judge_run(trace))) == list(map(essence, judge(trace)))


def test_more_crossed_pairs_than_anyone_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two processes delivers its own ten first: a hundred pairs."""
    own, numbers = ["send", "deliver"], range(1, 11)
    rows = [
        [(kind, p, n) for n in numbers for kind in own] + [("deliver", 1 - p, n) for n in numbers]
        for p in (0, 1)
    ]
    events = [Event("r", p, at, *row) for p in (0, 1) for at, row in enumerate(rows[p])]
    trace = Trace.of(Manifest("r", ("a", "b"), quiesced=True), events)

    def pairs() -> Verdict:
        return next(one for one in judge_run(trace) if one.property == "total_pairwise")

    assert pairs().violations == 100
    monkeypatch.setattr(running, "PAIRS", 35)
    found = pairs()
    assert 35 <= found.violations < 100
    assert found.witness is not None
    assert found.witness.sentence.endswith("(there are more such pairs than were counted)")


def test_who_waits_for_a_compiler_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel
    def nothing() -> int:
        return 0

    monkeypatch.setattr(judging, "judge_runs", nothing)
    assert judging.patience(WORTH_COMPILING - 1) is None
    told = judging.patience(WORTH_COMPILING)
    assert told is not None
    assert "once on this machine" in told
    monkeypatch.setattr(Kernel, "kept", True)
    assert judging.patience(WORTH_COMPILING) is None


def test_who_waits_for_a_compiler_each_time_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere(_: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    @kernel
    def nothing() -> int:
        return 0

    monkeypatch.setattr(Dispatcher, "enable_caching", nowhere)
    monkeypatch.setattr(judging, "judge_runs", nothing)
    told = judging.patience(WORTH_COMPILING)
    assert told is not None
    assert "each time" in told
    assert "NUMBA_CACHE_DIR" in told


def test_rows_that_contradict_each_other_are_no_verdict() -> None:
    trace = random_trace(5, "r")
    twice = replace(trace, events=(*trace.events, trace.events[0]))
    with pytest.raises(TraceError, match="run 'r': "):
        judge_run(twice)


def test_one_fault_among_thousands_of_rows() -> None:
    trace = run_once(partial(catalog.build, "fifo", "direct"), seed=3, size=5, messages=400)
    assert {one.verdict for one in judge_run(trace) if one.property == "fifo"} == {"holds"}
    rows = list(trace.events)
    swapped = {300: 301, 301: 300}
    for at, row in enumerate(rows):
        if (row.process, row.kind, row.origin) == (1, "deliver", 0) and row.number in swapped:
            rows[at] = msgspec.structs.replace(row, number=swapped[row.number])
    [fifo] = (
        one for one in judge_run(replace(trace, events=tuple(rows))) if one.property == "fifo"
    )
    assert (fifo.verdict, fifo.violations) == ("violated", 1)
    assert fifo.witness is not None
    assert set(fifo.witness.messages) == {"0:300", "0:301"}
