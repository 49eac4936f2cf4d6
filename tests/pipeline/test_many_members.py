"""Tables of messages × members, some members at a time: the same answers, in less room."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ordercast.oracle import judge
from ordercast.pipeline import judging
from ordercast.pipeline.here import judge_run
from ordercast.pipeline.judging import RUNS, Judged, judge_rows
from ordercast.pipeline.kernels import kernel
from ordercast.pipeline.kernels.index import at_a_time
from ordercast.pipeline.kernels.run import CELLS, judge_runs
from ordercast.trace import Event, Manifest, Trace
from ordercast.trace.parquet import to_table
from ordercast.trace.verdicts import PROPERTIES

from ..conformance.random_traces import knotted_trace, random_trace
from ..conformance.verdicts import essence

ONE_MEMBER, FEW = (1, 0), (60, 0)


def traces(many: int) -> list[Trace]:
    makes = (knotted_trace, random_trace, random_trace, random_trace)
    return [makes[seed % 4](seed, f"run {seed:04}") for seed in range(many)]


def judged(those: list[Trace], cells: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> Judged:
    monkeypatch.setattr(judging, "CELLS", cells)
    columns = [
        {
            "run": one.manifest.run,
            "names": one.manifest.processes,
            "size": len(one.manifest.processes),
            "quiesced": one.manifest.quiesced,
            "complete": one.manifest.complete,
        }
        for one in those
    ]
    events = pa.concat_tables([to_table(one.events) for one in those])
    return judge_rows(events, pa.Table.from_pylist(columns, RUNS))


@pytest.mark.parametrize("cells", [ONE_MEMBER, FEW])
def test_it_says_what_the_oracle_says(
    cells: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "CELLS", cells)
    for trace in traces(200):
        assert list(map(essence, judge_run(trace))) == list(map(essence, judge(trace)))


@pytest.mark.parametrize("cells", [ONE_MEMBER, FEW])
def test_nothing_differs_from_looking_at_all_members_at_once(
    cells: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the sentences either, nor the violations one by one, in their order."""
    those = traces(300)
    assert judged(those, cells, monkeypatch) == judged(those, CELLS, monkeypatch)


def test_tables_keep_to_their_room_whatever_the_members() -> None:
    room = np.array([1 << 20, 4])
    for messages, members, rows in ((10, 3, 100), (1, 100_000, 3), (400_000, 2_000, 800_000)):
        width = at_a_time(messages, members, rows, room)
        assert 1 <= width <= members
        assert width * (messages + members) <= max(1 << 20, 4 * rows)
    assert at_a_time(10, 3, 100, room) == 3
    assert at_a_time(0, 0, 0, room) == 1


def test_many_members_that_do_nothing_take_no_table_of_members_by_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would be 550 MiB."""
    monkeypatch.setattr(kernel, "WORTH_LOADING", 10**12)  # what is compiled is not measured
    monkeypatch.setattr(kernel, "WORTH_COMPILING", 10**12)
    events = [
        Event("r", 0, 0, "send", 0, 1, (1,)),
        Event("r", 1, 0, "deliver", 0, 1),
        Event("r", 1, 1, "deliver", 0, 2),
    ]
    trace = Trace.of(Manifest("r", tuple(f"p{i}" for i in range(12_000)), quiesced=True), events)
    tracemalloc.start()
    try:
        verdicts = {one.property: one for one in judge_run(trace)}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300 << 20
    assert {name for name in PROPERTIES if verdicts[name].verdict != "holds"} == {"no_creation"}
    assert verdicts["fifo"].checked == 1


def test_few_rows_among_many_members_are_worth_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Watched:
        kept = True

        def heeding_signals(self, rows: int) -> Callable[..., Any]:
            asked.append(rows)
            return judge_runs.plain

    monkeypatch.setattr(judging, "judge_runs", Watched())
    events = [Event("r", 0, at, "send", 0, at + 1, (0,)) for at in range(10)]
    judge_run(Trace.of(Manifest("r", tuple(f"p{i}" for i in range(500))), events))
    assert asked == [5_000]
