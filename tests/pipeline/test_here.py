"""Runs in memory, judged in this process: as the oracle does, and of sizes that it cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import msgspec
import pytest

from ordercast.errors import TraceError
from ordercast.oracle import judge
from ordercast.pipeline.here import judge_run
from ordercast.protocols import catalog
from ordercast.trace import Trace

from ..conformance.random_traces import knotted_trace, random_trace
from ..conformance.subjects import run_once
from ..conformance.verdicts import essence


@pytest.mark.parametrize("make", [random_trace, knotted_trace])
def test_it_says_what_the_oracle_says(make: Callable[[int, str], Trace]) -> None:
    for seed in range(150):
        trace = make(seed, f"run {seed}")
        assert list(map(essence, judge_run(trace))) == list(map(essence, judge(trace)))


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
